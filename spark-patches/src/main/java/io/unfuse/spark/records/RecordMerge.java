package io.unfuse.spark.records;

import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The input of an aggregator, which merges by key: the time until it reads on belongs to the key.
 */
final class RecordMerge extends AbstractIterator<Object> {
    private final RecordTask task;
    private final Iterator<?> records;
    private boolean merging;
    private long key;

    RecordMerge(RecordTask task, Iterator<?> records) {
        this.task = task;
        this.records = records;
    }

    @Override
    public boolean hasNext() {
        settle();
        boolean more = records.hasNext();
        task.fetched();
        return more;
    }

    @Override
    public Object next() {
        settle();
        Object record = records.next();
        try {
            if (record instanceof Product2) {
                key = RecordId.ofKey(((Product2<?, ?>) record)._1());
                merging = true;
            }
        } catch (Throwable error) {
            task.fail(error);
        }
        task.fetched();
        return record;
    }

    private void settle() {
        if (merging) {
            merging = false;
            task.merged(key);
        }
    }
}
