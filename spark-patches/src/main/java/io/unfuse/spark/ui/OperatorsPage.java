package io.unfuse.spark.ui;

import io.unfuse.spark.common.Agent;

import org.apache.spark.ui.WebUIPage;

import scala.xml.Unparsed;

/** A page of Spark without its only method, which {@link PageClass} adds. */
abstract class OperatorsPage extends WebUIPage {
    /** Creates the nodes of a page. */
    interface Content {
        Object of(Object request) throws Exception;
    }

    private final Content content;

    OperatorsPage(String prefix, Content content) {
        super(prefix);
        this.content = content;
    }

    /** The result of {@code render}; never throws. */
    final Object nodes(Object request) {
        try {
            return content.of(request);
        } catch (Throwable error) {
            Agent.failedWithoutLoss("showing the profile in Spark's web pages", error);
            return new Unparsed(
                    "<html><body><p>"
                            + OperatorsPages.escaped("unfuse cannot show this: " + error)
                            + "</p></body></html>");
        }
    }
}
