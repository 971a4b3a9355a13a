package io.unfuse.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class AgentTest {
    @AfterEach
    void restore() {
        Agent.use(SparkUnderTest.RECORDER);
    }

    @Test
    void withoutTheAgentNothingHappens() {
        Agent.use(Agent.NATIVE);
        Agent.taskStart(1, 0, 2);
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
        assertTrue(recorder.logged().get(0).contains("AgentTest here") && recorder.logged().get(0).contains("first"));
    }

    @Test
    void ourPluginComesAfterTheUsersAndOnce() throws Exception {
        Object theirs = ScalaSeq.fromList(Collections.singletonList(new UserPlugin()));
        Object both = UnfusePlugin.addTo(theirs);
        assertEquals(Arrays.asList(UserPlugin.class, UnfusePlugin.class), classes(both));
        assertSame(both, UnfusePlugin.addTo(both));
        assertEquals(Collections.singletonList(UnfusePlugin.class),
                classes(UnfusePlugin.addTo(ScalaSeq.fromList(Collections.emptyList()))));
        assertEquals("not a sequence", UnfusePlugin.addTo("not a sequence"));
    }

    private static java.util.List<Class<?>> classes(Object plugins) throws Exception {
        java.util.List<Class<?>> classes = new java.util.ArrayList<>();
        for (Object plugin : ScalaSeq.toList(plugins)) {
            classes.add(plugin.getClass());
        }
        return classes;
    }
}
