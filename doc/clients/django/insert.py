# Inserts rows with Django; their ids come from db_default, uuidv7_fast().

import os
from datetime import datetime, timedelta, timezone

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from django.db.models import DateTimeField, Func
from items.models import Item

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
timestamp = Func("id", function="uuidv7_fast_timestamp", output_field=DateTimeField())

for name in ("first", "second", "third"):
    id = Item.objects.create(name=name).id
    server_time = Item.objects.values_list(timestamp).get(id=id)[0]

    # The first 48 bits are milliseconds. Python 3.14 and later: id.time
    time = EPOCH + timedelta(milliseconds=id.int >> 80)

    print(f"{id} version {id.version}, time {time}, server {server_time}, now {datetime.now(timezone.utc)}")
