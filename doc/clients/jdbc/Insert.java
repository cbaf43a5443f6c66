// Inserts rows with JDBC; their ids come from DEFAULT uuidv7_fast().

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.UUID;

public class Insert {
    private static final String INSERT =
        "INSERT INTO item (name) VALUES (?) RETURNING id, uuidv7_fast_timestamp(id)";

    public static void main(String[] args) throws SQLException {
        try (Connection connection = connect();
             PreparedStatement insert = connection.prepareStatement(INSERT)) {
            for (String name : new String[] {"first", "second", "third"}) {
                insert.setString(1, name);
                try (ResultSet row = insert.executeQuery()) {
                    row.next();
                    UUID id = row.getObject(1, UUID.class);
                    Instant serverTime = row.getObject(2, OffsetDateTime.class).toInstant();

                    // UUID.timestamp() knows version 1 alone; the first 48 bits are milliseconds.
                    Instant time = Instant.ofEpochMilli(id.getMostSignificantBits() >>> 16);

                    System.out.printf("%s version %d, time %s, server %s, now %s%n",
                        id, id.version(), time, serverTime, Instant.now());
                }
            }
        }
    }

    // JDBC does not read PGHOST and the like by itself; it needs a host's name, not a socket's.
    private static Connection connect() throws SQLException {
        Map<String, String> env = System.getenv();
        return DriverManager.getConnection(
            String.format("jdbc:postgresql://%s:%s/%s",
                env.getOrDefault("PGHOST", "localhost"),
                env.getOrDefault("PGPORT", "5432"),
                env.getOrDefault("PGDATABASE", "postgres")),
            env.getOrDefault("PGUSER", System.getProperty("user.name")),
            env.get("PGPASSWORD"));
    }
}
