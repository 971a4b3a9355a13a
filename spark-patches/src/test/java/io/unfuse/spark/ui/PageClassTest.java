package io.unfuse.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.ui.WebUIPage;
import org.junit.jupiter.api.Test;

import scala.xml.Unparsed;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ServiceLoader;

/** The classes of the tab that are generated or that Spark finds by name. */
class PageClassTest {
    @Test
    void aPageOfThisSparkSaysWhatItIsGiven() throws Exception {
        WebUIPage page = PageClass.newPage("report", request -> new Unparsed("of " + request));
        assertEquals("report", page.prefix());
        for (Method method : WebUIPage.class.getMethods()) {
            if (method.getName().equals("render") && Modifier.isAbstract(method.getModifiers())) {
                assertEquals("of null", method.invoke(page, (Object) null).toString());
                return;
            }
        }
        throw new AssertionError("no method render");
    }

    @Test
    void theHistoryServerFindsThePlugin() {
        assertTrue(
                ServiceLoader.load(AppHistoryServerPlugin.class).stream()
                        .anyMatch(each -> each.type() == HistoryPlugin.class));
    }
}
