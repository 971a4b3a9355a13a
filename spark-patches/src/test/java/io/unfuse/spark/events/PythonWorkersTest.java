package io.unfuse.spark.events;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

class PythonWorkersTest {
    private static final String API = "org.apache.spark.api.python.";
    private static final String SQL = "org.apache.spark.sql.execution.python.";

    /** The simple names of the callers in a stack of these classes, innermost first. */
    private static List<String> callers(String... innermostFirst) {
        StackTraceElement[] stack =
                Arrays.stream(innermostFirst)
                        .map(name -> new StackTraceElement(name, "m", "F.scala", 1))
                        .toArray(StackTraceElement[]::new);
        return PythonWorkers.callers(stack).stream()
                .map(frame -> frame.getClassName().replaceFirst(".*\\.", ""))
                .collect(Collectors.toList());
    }

    @Test
    void callersReachFromTheOperatorToTheRunner() {
        assertEquals(
                Arrays.asList("EvalPythonExec", "Iterator", "BasePythonRunner"),
                callers(
                        "io.unfuse.spark.events.PythonWorkers",
                        "org.apache.spark.SparkEnv",
                        API + "BasePythonRunner",
                        "scala.collection.Iterator",
                        SQL + "EvalPythonExec",
                        "org.apache.spark.rdd.RDD",
                        "org.apache.spark.executor.Executor"));
    }

    @Test
    void theCallersOfAnotherWorkerAreNotItsOwn() {
        assertEquals(
                Arrays.asList("ArrowEvalPythonEvaluatorFactory", "BasePythonRunner"),
                callers(
                        "org.apache.spark.SparkEnv",
                        API + "BasePythonRunner",
                        SQL + "ArrowEvalPythonEvaluatorFactory",
                        "org.apache.spark.rdd.RDD",
                        API + "BasePythonRunner$WriterThread",
                        SQL + "MapInBatchExec"));
    }

    @Test
    void aStackWithoutARunnerHasNone() {
        assertEquals(Arrays.asList(), callers("a.B", SQL + "EvalPythonExec"));
        assertEquals(Arrays.asList(), callers());
    }

    @Test
    void aLongStackIsCut() {
        String[] stack = new String[200];
        Arrays.fill(stack, SQL + "EvalPythonExec");
        stack[0] = API + "BasePythonRunner";
        assertEquals(32, callers(stack).size());
    }
}
