package io.unfuse.spark.events;

import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;

import scala.Option;

import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * The stages that a stage reads from, by the ids under which they ran. A job uses a new id for the
 * stage of a shuffle that an earlier job has already written; with adaptive execution, this is true
 * for every job except the first.
 */
final class StageParents {
    /** Maximum number of stages and shuffles that are remembered. */
    private static final int MOST = 100_000;

    static final Method STAGES =
            ScalaSeq.method("org.apache.spark.scheduler.SparkListenerJobStart", "stageInfos");
    private static final Method PARENTS =
            ScalaSeq.method("org.apache.spark.scheduler.StageInfo", "parentIds");

    /** Null before Spark 3.1. */
    private static final Method SHUFFLE = shuffle();

    /** The shuffle that a stage writes. */
    private final Map<Integer, Integer> shuffles = new Bounded<>(MOST);

    /** The stage that ran to write a shuffle. */
    private final Map<Integer, Integer> writers = new Bounded<>(MOST);

    private static Method shuffle() {
        try {
            return StageInfo.class.getMethod("shuffleDepId");
        } catch (NoSuchMethodException older) {
            return null;
        }
    }

    void started(SparkListenerJobStart job) throws ReflectiveOperationException {
        if (SHUFFLE == null) {
            return;
        }
        for (Object stage : ScalaSeq.get(job, STAGES)) {
            Option<?> shuffle = (Option<?>) SHUFFLE.invoke(stage);
            if (shuffle.isDefined()) {
                shuffles.put(((StageInfo) stage).stageId(), (Integer) shuffle.get());
            }
        }
    }

    void submitted(StageInfo stage) {
        Integer shuffle = shuffles.get(stage.stageId());
        if (shuffle != null) {
            writers.putIfAbsent(shuffle, stage.stageId());
        }
    }

    Set<Long> of(StageInfo stage) throws ReflectiveOperationException {
        Set<Long> parents = new TreeSet<>();
        List<Object> ids = ScalaSeq.get(stage, PARENTS);
        for (Object id : ids) {
            Integer shuffle = shuffles.get((Integer) id);
            Integer writer = shuffle == null ? null : writers.get(shuffle);
            parents.add((long) (writer == null ? (Integer) id : writer));
        }
        return parents;
    }
}
