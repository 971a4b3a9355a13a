package io.unfuse.spark.common;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.unfuse.spark.SparkUnderTest;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.Collections;

class AgentTest {
    @AfterEach
    void restore() {
        Agent.use(SparkUnderTest.RECORDER);
    }

    @Test
    void withoutTheAgentNothingHappens() {
        Agent.use(Agent.NATIVE);
        Agent.taskStart(1, 0, 2, -1);
        Agent.taskEnd();
        assertFalse(Agent.event(new Json()));
        Agent.flush(10);
        Agent.log("unheard");
        Agent.failed("a test", new RuntimeException());
    }

    @Test
    void aFailureIsReportedOncePerPlace() {
        Recorder recorder = new Recorder();
        Agent.use(recorder);
        Agent.failed("AgentTest here", new RuntimeException("first"));
        Agent.failed("AgentTest here", new RuntimeException("second"));
        Agent.failed("AgentTest there", new RuntimeException("third"));
        assertEquals(2, recorder.logged().size());
        assertTrue(
                recorder.logged().get(0).contains("AgentTest here")
                        && recorder.logged().get(0).contains("first"));
    }

    @Test
    void aFailingAgentIsNotNoticed() {
        SparkUnderTest.run("select 1");
        Agent.use(
                new Agent.Link() {
                    @Override
                    public void taskStart(
                            int stage, int stageAttempt, long taskAttemptId, long execution) {
                        throw new IllegalStateException("taskStart");
                    }

                    @Override
                    public void taskEnd() {
                        throw new StackOverflowError("taskEnd");
                    }

                    @Override
                    public boolean event(byte[] utf8Json) {
                        throw new OutOfMemoryError("event");
                    }

                    @Override
                    public void flush(int millis) {
                        throw new IllegalStateException("flush");
                    }

                    @Override
                    public boolean deliver(int millis, boolean last) {
                        throw new IllegalStateException("deliver");
                    }

                    @Override
                    public void log(String line) {
                        throw new IllegalStateException("log");
                    }
                });
        assertEquals(
                Collections.singletonList("[123]"),
                SparkUnderTest.run("select count(*) from facts where id < 123"));
    }
}
