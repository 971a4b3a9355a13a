package io.unfuse.spark.ui;

import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;

import java.util.Collections;

/**
 * Adds the tab to the applications of a History Server with the agent; {@code ServiceLoader} finds
 * it.
 */
public final class HistoryPlugin implements AppHistoryServerPlugin {
    /**
     * None: the profile is our store. The type is a subtype of {@code Seq} in both Scala versions.
     */
    @Override
    @SuppressWarnings("unchecked")
    public scala.collection.immutable.Seq<SparkListener> createListeners(
            SparkConf conf, ElementTrackingStore store) {
        try {
            return (scala.collection.immutable.Seq<SparkListener>)
                    ScalaSeq.fromList(Collections.emptyList());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("Scala has no empty list", e);
        }
    }

    @Override
    public void setupUI(SparkUI ui) {
        OperatorsTab.addTo(ui);
    }
}
