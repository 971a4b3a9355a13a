package io.unfuse.spark.events;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.spark.scheduler.SparkListenerBlockUpdated;
import org.apache.spark.storage.BlockUpdatedInfo;
import org.apache.spark.storage.RDDBlockId;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

/**
 * Writes the {@code cached} events: how much memory the blocks of each cached RDD hold on each
 * executor.
 */
final class CacheEvents {
    /** RDDs whose filling stage is remembered. */
    private static final int MOST = 10_000;

    /** What the blocks of an RDD hold on an executor. */
    private static final class Held {
        final Map<Integer, Long> blocks = new HashMap<>();
        long bytes;
    }

    /** By executor and RDD. */
    private final Map<String, Map<Integer, Held>> held = new HashMap<>();

    private final Map<Integer, Integer> stages = new Bounded<>(MOST);

    /** The first stage that computes an RDD which is to be cached fills the cache. */
    void computes(int stage, int rdd) {
        stages.putIfAbsent(rdd, stage);
    }

    /** The event, or null where no cached RDD changed. */
    Json updated(SparkListenerBlockUpdated event) {
        BlockUpdatedInfo info = event.blockUpdatedInfo();
        if (!(info.blockId() instanceof RDDBlockId)) {
            return null;
        }
        RDDBlockId block = (RDDBlockId) info.blockId();
        String executor = info.blockManagerId().executorId();
        Held ofRdd =
                held.computeIfAbsent(executor, id -> new HashMap<>())
                        .computeIfAbsent(block.rddId(), id -> new Held());
        // An update that drops a block may say how large it was.
        long bytes = info.storageLevel().useMemory() ? info.memSize() : 0;
        Long before =
                bytes > 0
                        ? ofRdd.blocks.put(block.splitIndex(), bytes)
                        : ofRdd.blocks.remove(block.splitIndex());
        ofRdd.bytes += bytes - (before == null ? 0 : before);
        return event(executor, block.rddId(), ofRdd.bytes);
    }

    /** An executor's memory is gone with it. */
    void removed(String executor) {
        Map<Integer, Held> gone = held.remove(executor);
        if (gone != null) {
            for (int rdd : gone.keySet()) {
                Agent.event(event(executor, rdd, 0));
            }
        }
    }

    /** All memory is gone with the application. */
    void ended() {
        for (String executor : new ArrayList<>(held.keySet())) {
            removed(executor);
        }
    }

    void unpersisted(int rdd) {
        held.forEach(
                (executor, rdds) -> {
                    if (rdds.remove(rdd) != null) {
                        Agent.event(event(executor, rdd, 0));
                    }
                });
        stages.remove(rdd);
    }

    private Json event(String executor, int rdd, long bytes) {
        return new Json()
                .field("type", "cached")
                .field("executor", executor)
                .field("rdd", rdd)
                .field("stage", stages.get(rdd))
                .field("since_ms", System.currentTimeMillis())
                .field("memory_bytes", bytes);
    }
}
