# Inserts rows with Rails' Active Record; their ids come from DEFAULT uuidv7_fast().

require "active_record"

ActiveRecord::Base.establish_connection(adapter: "postgresql")

class CreateItems < ActiveRecord::Migration[ActiveRecord::Migration.current_version]
  def change
    enable_extension "fast_uuid"

    create_table :items, id: :uuid, default: -> { "uuidv7_fast()" } do |t|
      t.text :name, null: false
    end
  end
end

ActiveRecord::Migration.verbose = false
CreateItems.migrate(:up)

class Item < ActiveRecord::Base
end

["first", "second", "third"].each do |name|
  id = Item.create!(name: name).id # a string
  server_time = Item.where(id: id).pick(Arel.sql("uuidv7_fast_timestamp(id)"))

  # The first 12 digits are milliseconds, the 13th is the version.
  digits = id.delete("-")
  version = digits[12].hex
  time = Time.at(0, digits[0, 12].hex, :millisecond).utc

  puts "#{id} version #{version}, time #{time.iso8601(3)}, server #{server_time.iso8601(6)}, now #{Time.now.utc.iso8601(6)}"
end
