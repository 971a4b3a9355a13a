package io.unfuse.spark.records;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

import java.time.LocalDate;

/**
 * Texts of rows of Spark SQL; a class of its own, because an RDD program may not have Spark SQL.
 */
final class RecordRows {
    private RecordRows() {}

    static long id(Object row) {
        UnsafeRow unsafe = (UnsafeRow) row;
        return RecordId.mix(
                XXH64.hashUnsafeBytes(
                        unsafe.getBaseObject(),
                        unsafe.getBaseOffset(),
                        unsafe.getSizeInBytes(),
                        42));
    }

    /** A row's fields as {@code name=value, …}; null if it is not a row. */
    static String text(Object record, Object schema, int most) {
        if (record instanceof ColumnarBatch) {
            return "a batch of " + ((ColumnarBatch) record).numRows() + " rows";
        }
        if (!(record instanceof InternalRow)) {
            return null;
        }
        InternalRow row = (InternalRow) record;
        if (!(schema instanceof StructType)
                || ((StructType) schema).fields().length != row.numFields()) {
            return "a row of " + row.numFields() + " fields";
        }
        StringBuilder text = new StringBuilder();
        StructField[] fields = ((StructType) schema).fields();
        for (int i = 0; i < fields.length && text.length() <= most; i++) {
            text.append(i == 0 ? "" : ", ").append(fields[i].name()).append('=');
            text.append(
                    row.isNullAt(i)
                            ? "null"
                            : value(row.get(i, fields[i].dataType()), fields[i].dataType(), most));
        }
        return text.toString();
    }

    private static String value(Object value, DataType type, int most) {
        if (value instanceof UTF8String && ((UTF8String) value).numBytes() > most) {
            return ((UTF8String) value).substring(0, most + 1).toString();
        }
        return type instanceof DateType
                ? LocalDate.ofEpochDay((Integer) value).toString()
                : String.valueOf(value);
    }
}
