package io.unfuse.spark.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.unfuse.spark.SparkUnderTest;

import org.apache.spark.scheduler.SparkListenerApplicationStart;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import scala.Option;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The data for the time of a whole run: the application, its jobs, and the origin of their stages.
 */
class JobEventsTest {
    @BeforeEach
    void clear() {
        SparkUnderTest.run("select 1");
        SparkUnderTest.RECORDER.clear();
    }

    @Test
    void jobsHaveTheirStagesAndAnEnd() {
        SparkUnderTest.run("select k, count(*) from facts group by k order by k");
        Map<Long, JsonNode> started = new HashMap<>();
        Set<Integer> stages = new HashSet<>();
        Set<Long> ended = new HashSet<>();
        for (JsonNode job : SparkUnderTest.RECORDER.events("job")) {
            long id = job.get("job").asLong();
            if (job.has("stages")) {
                started.put(id, job);
                job.get("stages").forEach(stage -> stages.add(stage.asInt()));
            } else {
                ended.add(id);
                assertTrue(job.get("failure").isNull(), job::toString);
                assertTrue(
                        job.get("ended_ms").asLong() >= started.get(id).get("started_ms").asLong(),
                        job::toString);
            }
        }
        assertFalse(started.isEmpty());
        assertEquals(started.keySet(), ended);
        for (JsonNode stage : SparkUnderTest.RECORDER.events("stage")) {
            assertTrue(stages.contains(stage.get("stage").asInt()), stage::toString);
        }
    }

    @Test
    void aJobThatFailsSaysWhyInOneLine() throws InterruptedException {
        assertThrows(
                Exception.class,
                () -> SparkUnderTest.run("select raise_error('no luck') from facts where id > 10"));
        List<String> why = new ArrayList<>();
        // Spark throws the exception before it reports the end of the job.
        for (int look = 0; look < 1_000 && why.isEmpty(); look++) {
            Thread.sleep(10);
            SparkUnderTest.drain();
            for (JsonNode job : SparkUnderTest.RECORDER.events("job")) {
                if (job.has("failure")) {
                    why.add(job.get("failure").asText());
                }
            }
        }
        assertTrue(
                why.toString().contains("no luck") && !why.toString().contains("\n"),
                why::toString);
    }

    @Test
    void stagesSayAtSubmissionWhatMadeThem() {
        SparkUnderTest.run("select k, count(*) from facts group by k");
        int submitted = 0;
        for (JsonNode stage : SparkUnderTest.RECORDER.events("stage")) {
            if (stage.has("rdds")) {
                submitted++;
                assertFalse(stage.get("rdds").isEmpty(), stage::toString);
                assertTrue(
                        stage.get("packages").toString().contains("\"org.apache.spark.sql"),
                        stage::toString);
                Set<String> scopes = new HashSet<>();
                stage.get("scopes").forEach(scope -> scopes.add(scope.asText()));
                Set<String> rdds = new HashSet<>();
                stage.get("rdds").forEach(rdd -> rdds.add(rdd.asText()));
                assertTrue(rdds.containsAll(scopes), stage::toString);
            }
        }
        assertEquals(SparkUnderTest.RECORDER.events("stage").size(), 2 * submitted);
    }

    @Test
    void packagesAreThoseOfTheStacksMethods() {
        String stack =
                "org.apache.spark.rdd.RDD.$anonfun$count$1(RDD.scala:1296)\norg.apache.spark.rdd.RDD.count(RDD.scala:1)\n"
                        + "org.apache.spark.ml.clustering.KMeans.fit(KMeans.scala:2)\nMain.main(Main.java:3)\n"
                        + "java.base/jdk.internal.reflect.Direct.invoke(Direct.java)\n  no method\n(.)\n...()";
        Set<String> expected =
                new HashSet<>(
                        Arrays.asList(
                                "org.apache.spark.rdd",
                                "org.apache.spark.ml.clustering",
                                "java.base/jdk.internal.reflect"));
        Set<String> found = StageEvents.packages(stack);
        found.remove(".");
        assertEquals(expected, found);
        assertTrue(StageEvents.packages("").isEmpty());
    }

    @Test
    void theApplicationAndItsExecutorsAreTold() {
        SparkListenerApplicationStart start =
                new SparkListenerApplicationStart(
                        "tests",
                        Option.apply("a"),
                        7,
                        "u",
                        Option.empty(),
                        Option.empty(),
                        Option.empty());
        JobEvents events = new JobEvents(SparkUnderTest.context());
        String app = ",\"app\":\"" + SparkUnderTest.context().applicationId() + "\"";
        assertEquals(
                "{\"type\":\"application\""
                        + app
                        + ",\"name\":\"tests\",\"started_ms\":7,\"settings\":[]}",
                events.started(start).toString());
        SparkListenerExecutorRemoved removed = new SparkListenerExecutorRemoved(9, "1", "idle");
        assertEquals(
                "{\"type\":\"executor\"" + app + ",\"executor\":\"1\",\"removed_ms\":9}",
                events.removed(removed).toString());
    }
}
