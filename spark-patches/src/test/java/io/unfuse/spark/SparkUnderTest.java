package io.unfuse.spark;

import io.unfuse.spark.common.Recorder;
import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.WholeStageCodegenExec;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * One local Spark for all tests of the JVM, patched by {@code TestAgent}. The types of the session
 * and its builder differ between Spark 3.5 and 4, so those calls are by name.
 */
public final class SparkUnderTest {
    private SparkUnderTest() {}

    /** Whether it is Spark 4. */
    public static final boolean IS_4 =
            !org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("3.");

    /** Records Spark's calls of the agent. */
    public static final Recorder RECORDER = new Recorder();

    private static final Object SESSION = start();

    private static Object start() {
        RECORDER.listen();
        System.setProperty("unfuse.heartbeat.millis", "200");
        try {
            Path directory = Files.createTempDirectory(Path.of("target"), "spark");
            Object builder =
                    Class.forName("org.apache.spark.sql.SparkSession")
                            .getMethod("builder")
                            .invoke(null);
            String[][] settings = {
                {"spark.master", "local[2]"},
                {"spark.app.name", "tests"},
                {"spark.ui.enabled", "false"},
                {"spark.sql.shuffle.partitions", "2"},
                {"spark.plugins", UserPlugin.class.getName()},
                {"spark.sql.warehouse.dir", directory.toUri().toString()},
                {"spark.driver.host", "localhost"},
            };
            for (String[] setting : settings) {
                builder = call(builder, "config", setting[0], setting[1]);
            }
            Object session = call(builder, "getOrCreate");
            tables(session, directory);
            Runtime.getRuntime().addShutdownHook(new Thread(() -> call(session, "stop")));
            return session;
        } catch (ReflectiveOperationException | java.io.IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void tables(Object session, Path directory) {
        String facts = directory.resolve("facts").toUri().toString();
        Object rows =
                call(
                        session,
                        "sql",
                        "select id, id % 17 as k, cast(id as double) / 3 as amount,"
                                + " concat('name ', id % 5) as name, array(id, id + 1, id % 3) as list,"
                                + " cast(id % 100 as decimal(12, 2)) as price, date_add(date'2020-01-01', cast(id % 365 as int)) as day"
                                + " from range(0, 20000, 1, 2)");
        call(call(rows, "write"), "parquet", facts);
        sql(session, "create temporary view facts using parquet options (path '" + facts + "')");
        sql(
                session,
                "create temporary view dim as select id as k, concat('dim ', id) as label, id * 2 as v from range(15)");
    }

    static void sql(Object session, String text) {
        call(call(session, "sql", text), "collectAsList");
    }

    /** Runs a query and returns its rows as text. */
    public static List<String> run(String query) {
        List<String> rows = new ArrayList<>();
        for (Object row : (List<?>) call(call(SESSION, "sql", query), "collectAsList")) {
            rows.add(String.valueOf(row));
        }
        drain();
        return rows;
    }

    /** Sets a configuration of the session; null unsets it. */
    public static void set(String key, Object value) {
        Object conf = call(SESSION, "conf");
        if (value == null) {
            call(conf, "unset", key);
        } else {
            call(conf, "set", key, value.toString());
        }
    }

    /** The context of the session. */
    public static SparkContext context() {
        return (SparkContext) call(SESSION, "sparkContext");
    }

    /** Waits until the listeners have processed all events. */
    public static void drain() {
        // Other tasks of a failed job may still run for a moment.
        for (int i = 0; i < 200 && RECORDER.tasks().size() % 2 != 0; i++) {
            LockSupport.parkNanos(50_000_000);
        }
        call(call(context(), "listenerBus"), "waitUntilEmpty");
    }

    /**
     * Plans a query without adaptive execution and returns its codegen stages, including those of
     * subqueries.
     */
    public static List<WholeStageCodegenExec> stages(String query)
            throws ReflectiveOperationException {
        set("spark.sql.adaptive.enabled", "false");
        try {
            Object plan = call(call(call(SESSION, "sql", query), "queryExecution"), "executedPlan");
            List<WholeStageCodegenExec> found = new ArrayList<>();
            collect((TreeNode<?>) plan, found);
            return found;
        } finally {
            set("spark.sql.adaptive.enabled", "true");
        }
    }

    private static void collect(TreeNode<?> node, List<WholeStageCodegenExec> found)
            throws ReflectiveOperationException {
        if (node instanceof WholeStageCodegenExec) {
            found.add((WholeStageCodegenExec) node);
        }
        for (Object child : ScalaSeq.toList(call(node, "children"))) {
            collect((TreeNode<?>) child, found);
        }
        for (Object subquery : ScalaSeq.toList(call(node, "subqueries"))) {
            collect((TreeNode<?>) subquery, found);
        }
    }

    /**
     * Calls a public method by its name and the number (and, if necessary, the types) of its
     * arguments.
     */
    public static Object call(Object target, String name, Object... arguments) {
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && !method.isBridge() && accepts(method, arguments)) {
                try {
                    method.setAccessible(true);
                    return method.invoke(target, arguments);
                } catch (InvocationTargetException e) {
                    throw SparkUnderTest.<RuntimeException>sneaky(e.getCause());
                } catch (ReflectiveOperationException e) {
                    throw new IllegalStateException(e);
                }
            }
        }
        throw new IllegalStateException("no method " + name + " in " + target.getClass());
    }

    private static boolean accepts(Method method, Object... arguments) {
        Class<?>[] types = method.getParameterTypes();
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            if (!types[i].isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> RuntimeException sneaky(Throwable error) throws T {
        throw (T) error;
    }
}
