package io.unfuse.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.unfuse.spark.common.ScalaSeq;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

class ProfilingPluginTest {
    @Test
    void ourPluginComesAfterTheUsersAndOnce() throws Exception {
        Object theirs = ScalaSeq.fromList(Collections.singletonList(new UserPlugin()));
        Object both = ProfilingPlugin.addTo(theirs);
        assertEquals(Arrays.asList(UserPlugin.class, ProfilingPlugin.class), classes(both));
        assertSame(both, ProfilingPlugin.addTo(both));
        assertEquals(
                Collections.singletonList(ProfilingPlugin.class),
                classes(ProfilingPlugin.addTo(ScalaSeq.fromList(Collections.emptyList()))));
        assertEquals("not a sequence", ProfilingPlugin.addTo("not a sequence"));
    }

    private static List<Class<?>> classes(Object plugins) throws Exception {
        List<Class<?>> classes = new ArrayList<>();
        for (Object plugin : ScalaSeq.toList(plugins)) {
            classes.add(plugin.getClass());
        }
        return classes;
    }
}
