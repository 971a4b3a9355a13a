package marks;

import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A source and a sink that do marked work for each row. As a source it has numbers in a column {@code value}. */
public final class MarkedTable implements TableProvider, SupportsRead, SupportsWrite {
    private static final StructType SCHEMA = new StructType().add("value", DataTypes.LongType);
    private static final int PARTITIONS = 2;
    private static final long ROWS = 10_000;

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return this;
    }

    @Override
    public String name() {
        return "marked";
    }

    @Override
    public StructType schema() {
        return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
                TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return Numbers::new;
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new Sink();
    }

    private static final class Numbers implements Scan, Batch {
        @Override
        public StructType readSchema() {
            return SCHEMA;
        }

        @Override
        public Batch toBatch() {
            return this;
        }

        @Override
        public InputPartition[] planInputPartitions() {
            return IntStream.range(0, PARTITIONS).mapToObj(at -> new Part()).toArray(InputPartition[]::new);
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return new Readers();
        }
    }

    private static final class Part implements InputPartition {}

    private static final class Readers implements PartitionReaderFactory {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new Marks.Scan();
        }
    }

    /** Numbers from 0; makes each by marked work. */
    abstract static class Reader implements PartitionReader<InternalRow> {
        private long next;
        private Long made;

        /** The marked work. */
        abstract Long make(long value);

        @Override
        public boolean next() {
            if (next == ROWS / PARTITIONS) {
                return false;
            }
            made = make(next++);
            return true;
        }

        @Override
        public InternalRow get() {
            return new GenericInternalRow(new Object[] {made});
        }

        @Override
        public void close() {}
    }

    private static final class Sink implements WriteBuilder, SupportsTruncate {
        @Override
        public WriteBuilder truncate() {
            return this;
        }

        @Override
        public BatchWrite buildForBatch() {
            return new Written();
        }
    }

    private static final class Written implements BatchWrite {
        @Override
        public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
            return new Writers();
        }

        @Override
        public void commit(WriterCommitMessage[] messages) {}

        @Override
        public void abort(WriterCommitMessage[] messages) {}
    }

    private static final class Writers implements DataWriterFactory {
        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task) {
            return new Marks.Write();
        }
    }

    /** Does marked work for each row. */
    abstract static class Writer implements DataWriter<InternalRow> {
        @Override
        public WriterCommitMessage commit() {
            return null;
        }

        @Override
        public void abort() {}

        @Override
        public void close() {}
    }
}
