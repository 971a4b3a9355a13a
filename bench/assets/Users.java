import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Users of a Thrift server, each with a connection and a scheduler pool of its own, who run their statements one after the
 * other. Arguments: port, file of [{"name": user, "statements": [{"name", "sql", "after", "after_end_of", "delay_ms",
 * "until_end_of"}]}]; a statement with "after" waits until that one has started, with "after_end_of" until it has ended, and is
 * cancelled when "until_end_of" has ended. Prints "START|END|FAILED ms name".
 */
public final class Users {
    private static final long PATIENCE_MS = 10_000;
    private static final Map<String, CountDownLatch> LATCHES = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        Class.forName("org.apache.hive.jdbc.HiveDriver");
        String url = "jdbc:hive2://localhost:" + arguments[0] + "/default";
        List<Thread> threads = new ArrayList<>();
        for (JsonNode user : new ObjectMapper().readTree(Path.of(arguments[1]).toFile())) {
            Thread thread = new Thread(() -> run(url, user));
            // The driver may wait for ever for the status of a statement that was cancelled.
            thread.setDaemon(user.findValue("until_end_of") != null);
            threads.add(thread);
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            if (!thread.isDaemon()) {
                thread.join();
            }
        }
        for (Thread thread : threads) {
            thread.join(PATIENCE_MS);
        }
    }

    private static void run(String url, JsonNode user) {
        String name = user.get("name").asText();
        try (Connection connection = DriverManager.getConnection(url, name, "");
                Statement statement = connection.createStatement()) {
            statement.execute("SET spark.sql.thriftserver.scheduler.pool=" + name);
            for (JsonNode each : user.get("statements")) {
                if (each.hasNonNull("after")) {
                    latch("START", each.get("after").asText()).await();
                }
                if (each.hasNonNull("after_end_of")) {
                    latch("END", each.get("after_end_of").asText()).await();
                }
                Thread.sleep(each.path("delay_ms").asLong());
                execute(statement, each);
            }
        } catch (Throwable failure) {
            // Others may wait for this user's statements for ever.
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void execute(Statement statement, JsonNode each) {
        String name = each.get("name").asText();
        AtomicBoolean cancelled = new AtomicBoolean();
        if (each.hasNonNull("until_end_of")) {
            Thread cancel = new Thread(() -> cancel(statement, latch("END", each.get("until_end_of").asText()), cancelled));
            cancel.setDaemon(true);
            cancel.start();
        }
        tell("START", name);
        try {
            if (statement.execute(each.get("sql").asText())) {
                try (ResultSet rows = statement.getResultSet()) {
                    while (rows.next()) {
                        // Read, so that the query is run to its end.
                    }
                }
            }
            tell("END", name);
        } catch (SQLException failure) {
            if (cancelled.get()) {
                tell("END", name);
                return;
            }
            tell("FAILED", name);
            latch("END", name).countDown();
            System.err.println(name + ": " + failure.getMessage());
        }
    }

    private static void cancel(Statement statement, CountDownLatch when, AtomicBoolean cancelled) {
        try {
            when.await();
            cancelled.set(true);
            statement.cancel();
        } catch (InterruptedException | SQLException failure) {
            failure.printStackTrace();
        }
    }

    private static CountDownLatch latch(String what, String name) {
        return LATCHES.computeIfAbsent(what + name, key -> new CountDownLatch(1));
    }

    private static synchronized void tell(String what, String name) {
        System.out.println(what + " " + System.currentTimeMillis() + " " + name);
        latch(what, name).countDown();
    }
}
