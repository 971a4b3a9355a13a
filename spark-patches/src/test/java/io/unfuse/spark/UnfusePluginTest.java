package io.unfuse.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.unfuse.spark.common.ScalaSeq;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

class UnfusePluginTest {
    @Test
    void ourPluginComesAfterTheUsersAndOnce() throws Exception {
        Object theirs = ScalaSeq.fromList(Collections.singletonList(new UserPlugin()));
        Object both = UnfusePlugin.addTo(theirs);
        assertEquals(Arrays.asList(UserPlugin.class, UnfusePlugin.class), classes(both));
        assertSame(both, UnfusePlugin.addTo(both));
        assertEquals(
                Collections.singletonList(UnfusePlugin.class),
                classes(UnfusePlugin.addTo(ScalaSeq.fromList(Collections.emptyList()))));
        assertEquals("not a sequence", UnfusePlugin.addTo("not a sequence"));
    }

    private static List<Class<?>> classes(Object plugins) throws Exception {
        List<Class<?>> classes = new ArrayList<>();
        for (Object plugin : ScalaSeq.toList(plugins)) {
            classes.add(plugin.getClass());
        }
        return classes;
    }
}
