package io.unfuse.spark.ui;

import io.unfuse.spark.common.Agent;

import org.apache.spark.SparkContext;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;

/**
 * The tab "Operators" of Spark's web pages, of a running application or in the History Server: a
 * page in Spark's frame that contains the report of the profile, which is a separate page ({@code
 * operators/report}).
 */
public final class OperatorsTab extends SparkUITab {
    private OperatorsTab(SparkUI ui) {
        super(ui, "operators");
    }

    /** Adds the tab to the pages of a running application, if it has any. */
    public static void addTo(SparkContext spark) {
        try {
            if (spark.ui().isDefined()) {
                addTo(spark.ui().get());
            }
        } catch (Throwable error) {
            failed(error);
        }
    }

    /** Adds the tab if the agent has set the profile's path. */
    static void addTo(SparkUI ui) {
        try {
            ReportProgram program = ReportProgram.configured();
            if (program != null) {
                OperatorsTab tab = new OperatorsTab(ui);
                // In some versions of Spark the id is not known yet.
                OperatorsPages pages =
                        new OperatorsPages(tab, program, () -> ui.store().applicationInfo().id());
                tab.attachPage(PageClass.newPage("", pages::frame));
                tab.attachPage(PageClass.newPage("report", pages::report));
                ui.attachTab(tab);
            }
        } catch (Throwable error) {
            failed(error);
        }
    }

    private static void failed(Throwable error) {
        Agent.failedWithoutLoss("adding the tab Operators to Spark's web pages", error);
    }
}
