package io.unfuse.spark.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.unfuse.spark.Queries;
import io.unfuse.spark.SparkUnderTest;
import io.unfuse.spark.UserPlugin;

import org.apache.spark.metrics.source.CodegenMetrics$;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The events of a running Spark. */
class EventsTest {
    @BeforeEach
    void clear() {
        SparkUnderTest.run("select 1");
        SparkUnderTest.RECORDER.clear();
    }

    @Test
    void codegenAgreesWithThePlanAndTheSources() {
        for (String name : Queries.ALL.keySet()) {
            SparkUnderTest.RECORDER.clear();
            SparkUnderTest.run(Queries.ALL.get(name));
            List<JsonNode> codegens = SparkUnderTest.RECORDER.events("codegen");
            assertFalse(codegens.isEmpty(), name);
            Set<List<String>> planned = new HashSet<>();
            for (JsonNode plan : SparkUnderTest.RECORDER.events("plan")) {
                planned.addAll(codegenStages(plan));
            }
            int compiled = 0;
            for (JsonNode codegen : codegens) {
                List<String> nodes = new ArrayList<>();
                int region = 0;
                for (JsonNode node : codegen.get("nodes")) {
                    assertEquals(region++, node.get("region").asInt());
                    nodes.add(node.get("operator").asText());
                }
                assertEquals(
                        "WholeStageCodegen (" + codegen.get("codegen_stage").asInt() + ")",
                        nodes.get(0));
                assertTrue(codegen.get("execution").isNumber(), codegen::toString);
                assertTrue(
                        planned.contains(nodes),
                        () -> name + ": " + nodes + " is in no plan of " + planned);
                compiled +=
                        SparkUnderTest.RECORDER.sources().containsKey(codegen.get("hash").asText())
                                ? 1
                                : 0;
            }
            assertEquals(
                    codegens.size(),
                    compiled,
                    name + ": the text of each generated class is known");
        }
        assertEquals(Collections.emptyList(), SparkUnderTest.RECORDER.logged());
    }

    /** For each codegen stage of a plan event, its operators by region. */
    private static List<List<String>> codegenStages(JsonNode plan) {
        List<List<String>> stages = new ArrayList<>();
        Map<Integer, List<String>> stageOfNode = new HashMap<>();
        int number = 0;
        for (JsonNode node : plan.get("nodes")) {
            assertEquals(number++, node.get("node").asInt());
            assertTrue(
                    node.get("parent").isNull()
                            ? number == 1
                            : node.get("parent").asInt() < number - 1);
            assertEquals(node.get("region").isNull(), node.get("codegen_stage").isNull());
            if (node.get("region").isNull()) {
                continue;
            }
            List<String> stage;
            if (node.get("region").asInt() == 0) {
                stage = new ArrayList<>();
                stages.add(stage);
            } else {
                stage = stageOfNode.get(node.get("parent").asInt());
            }
            stageOfNode.put(node.get("node").asInt(), stage);
            assertEquals(stage.size(), node.get("region").asInt());
            stage.add(node.get("operator").asText());
        }
        return stages;
    }

    @Test
    void aRepeatedQueryIsNotCompiledAgain() {
        String query = Queries.ALL.get("scan, filter, broadcast join, aggregate");
        SparkUnderTest.run(query);
        long compiled = CodegenMetrics$.MODULE$.METRIC_COMPILATION_TIME().getCount();
        SparkUnderTest.RECORDER.clear();
        SparkUnderTest.run(query);
        assertEquals(compiled, CodegenMetrics$.MODULE$.METRIC_COMPILATION_TIME().getCount());
        assertEquals(Collections.emptyList(), SparkUnderTest.RECORDER.events("source"));
        assertFalse(SparkUnderTest.RECORDER.events("codegen").isEmpty());
    }

    @Test
    void plansCarryMetricsWhoseValuesComeWithTheStages() {
        SparkUnderTest.run("select k, count(*) from facts where id < 1000 group by k");
        List<JsonNode> plans = SparkUnderTest.RECORDER.events("plan");
        JsonNode last = plans.get(plans.size() - 1);
        assertEquals(plans.size() - 1, last.get("version").asInt());
        assertEquals(plans.get(0).get("description"), last.get("description"));
        long filterRows = -1;
        for (JsonNode node : last.get("nodes")) {
            if (node.get("operator").asText().equals("Filter")) {
                assertTrue(node.get("detail").asText().contains("< 1000"), node::toString);
                for (JsonNode metric : node.get("metrics")) {
                    if (metric.get("name").asText().equals("number of output rows")) {
                        assertEquals("sum", metric.get("kind").asText());
                        filterRows = metric.get("id").asLong();
                    }
                }
            }
        }
        String value = null;
        JsonNode scan = null;
        for (JsonNode stage : SparkUnderTest.RECORDER.events("stage")) {
            assertEquals(last.get("execution"), stage.get("execution"));
            for (JsonNode accumulator : stage.get("accumulators")) {
                if (accumulator.get("id").asLong() == filterRows
                        && !stage.get("completed").isNull()) {
                    value = accumulator.get("value").asText();
                    scan = stage;
                }
            }
        }
        assertEquals("1000", value);
        assertTrue(scan.get("scopes").toString().contains("WholeStageCodegen (1)"), scan::toString);
        JsonNode end = SparkUnderTest.RECORDER.events("execution_end").get(0);
        assertEquals(last.get("execution"), end.get("execution"));
        assertTrue(end.get("error").isNull());
    }

    @Test
    void tasksAreMarkedOnTheirThreadsAndReported() {
        SparkUnderTest.run("select k, count(*) from facts group by k");
        List<JsonNode> tasks = SparkUnderTest.RECORDER.events("task");
        assertFalse(tasks.isEmpty());
        Set<String> expected = new HashSet<>();
        for (JsonNode task : tasks) {
            assertEquals("SUCCESS", task.get("status").asText());
            assertEquals("driver", task.get("executor").asText());
            assertTrue(task.get("cpu_ns").asLong() > 0);
            assertTrue(task.get("finished_ms").asLong() >= task.get("launched_ms").asLong());
            expected.add(
                    task.get("stage").asInt()
                            + "."
                            + task.get("attempt").asInt()
                            + " "
                            + task.get("task").asLong());
        }
        assertEquals(expected, marked());
    }

    /** The tasks that were marked; checks that each end follows its start on the same thread. */
    private static Set<String> marked() {
        Set<String> marked = new HashSet<>();
        Map<String, String> running = new HashMap<>();
        for (String line : SparkUnderTest.RECORDER.tasks()) {
            List<String> words = Arrays.asList(line.split(" "));
            String thread = words.get(words.size() - 1);
            if (words.get(0).equals("start")) {
                assertEquals(null, running.put(thread, line));
                marked.add(words.get(1) + " " + words.get(2));
            } else {
                assertFalse(running.remove(thread) == null, "an end without a start");
            }
        }
        assertEquals(Collections.emptyMap(), running);
        return marked;
    }

    @Test
    void aFailingQueryIsReportedAsFailed() {
        assertThrows(
                Exception.class,
                () -> SparkUnderTest.run("select raise_error('no luck') from facts where id > 10"));
        SparkUnderTest.drain();
        List<JsonNode> ends = SparkUnderTest.RECORDER.events("execution_end");
        assertTrue(ends.get(0).get("error").asText().contains("no luck"), ends::toString);
        assertTrue(
                SparkUnderTest.RECORDER.events("task").stream()
                        .anyMatch(t -> !t.get("status").asText().equals("SUCCESS")));
        List<JsonNode> stages = SparkUnderTest.RECORDER.events("stage");
        assertTrue(stages.get(stages.size() - 1).get("failure").asText().contains("no luck"));
        marked();
    }

    @Test
    void theUsersPluginStaysAndTheSettingIsUntouched() {
        assertTrue(UserPlugin.isDriverActive);
        int before = UserPlugin.tasks;
        SparkUnderTest.run("select count(*) from facts");
        assertTrue(UserPlugin.tasks > before);
        assertEquals(
                UserPlugin.class.getName(),
                SparkUnderTest.context().getConf().get("spark.plugins"));
        assertEquals(
                UserPlugin.class.getName(),
                org.apache.spark.SparkEnv.get().conf().get("spark.plugins"));
    }
}
