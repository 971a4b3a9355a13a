package io.unfuse.spark.records;

import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;

/**
 * Ids of records: 64 bits of their content, the same in every JVM, so that the outputs of a stage
 * can be matched with the inputs of the next. Two records with the same id count as one.
 */
final class RecordId {
    private RecordId() {}

    /** No id: the content does not identify the record. */
    static final long NONE = 0;

    private static final int DEEPEST = 8;

    /** Number of characters whose hash takes less time than two readings of the clock. */
    private static final int SHORT = 32;

    /**
     * Whether equal objects of a class have equal hash codes, which is false unless a class
     * overrides {@code hashCode}.
     */
    private static final ClassValue<Boolean> HASHED =
            new ClassValue<Boolean>() {
                @Override
                protected Boolean computeValue(Class<?> type) {
                    try {
                        return type.getMethod("hashCode").getDeclaringClass() != Object.class;
                    } catch (NoSuchMethodException e) {
                        return false;
                    }
                }
            };

    private static final ClassValue<Boolean> IS_ROW =
            new ClassValue<Boolean>() {
                @Override
                protected Boolean computeValue(Class<?> type) {
                    return type.getName()
                            .equals("org.apache.spark.sql.catalyst.expressions.UnsafeRow");
                }
            };

    private static final ClassValue<Boolean> IS_LAZY =
            new ClassValue<Boolean>() {
                @Override
                protected Boolean computeValue(Class<?> type) {
                    String name = type.getName();
                    return name.contains("Lazy")
                            || name.contains("Stream")
                            || name.contains("View");
                }
            };

    static boolean isRow(Object record) {
        return record != null && IS_ROW.get(record.getClass());
    }

    /** Whether the id of a value takes almost no time, and runs no user code. */
    static boolean isShort(Object value) {
        return value instanceof String && ((String) value).length() <= SHORT
                || value instanceof Integer
                || value instanceof Long;
    }

    /** The id of a key; keys of Spark's shuffles have a usable {@code hashCode}. */
    static long ofKey(Object key) {
        long id = of(key, 0);
        return id != NONE ? id : mix(key.hashCode());
    }

    /** The id of a whole record; {@link #NONE} if it has parts without an identity. */
    static long of(Object record) {
        return of(record, 0);
    }

    private static long of(Object value, int depth) {
        if (value == null) {
            return 0x6e756c6cL;
        }
        if (value instanceof String) {
            return ofText((String) value);
        }
        if (value instanceof Number) {
            return ofNumber((Number) value);
        }
        if (value instanceof byte[]) {
            long hash = 17;
            for (byte b : (byte[]) value) {
                hash = hash * 0x100000001b3L + b;
            }
            return mix(hash);
        }
        if (isRow(value)) {
            return RecordRows.id(value);
        }
        if (value instanceof Enum) {
            return ofText(((Enum<?>) value).name());
        }
        if (depth >= DEEPEST) {
            return NONE;
        }
        if (value instanceof scala.collection.Iterable || value instanceof Collection) {
            // Linked lists are products, too, as deep as they are long. Lazy ones may be infinite.
            return IS_LAZY.get(value.getClass()) ? NONE : ofCollection(value, depth);
        }
        if (value instanceof scala.Product) {
            scala.Product product = (scala.Product) value;
            long hash = 31;
            for (int i = 0; i < product.productArity(); i++) {
                long part = of(product.productElement(i), depth + 1);
                if (part == NONE) {
                    return NONE;
                }
                hash = hash * 0x9e3779b97f4a7c15L + part;
            }
            return mix(hash);
        }
        if (value instanceof Object[]) {
            return ofElements(Arrays.asList((Object[]) value).iterator(), 37, depth);
        }
        return HASHED.get(value.getClass()) ? mix(value.hashCode()) : NONE;
    }

    /**
     * By element if they are in order, so that equal ones have equal ids, however they were made.
     */
    private static long ofCollection(Object value, int depth) {
        if (value instanceof scala.collection.Seq) {
            scala.collection.Iterator<?> elements = ((scala.collection.Seq<?>) value).iterator();
            return ofElements(
                    new Iterator<Object>() {
                        @Override
                        public boolean hasNext() {
                            return elements.hasNext();
                        }

                        @Override
                        public Object next() {
                            return elements.next();
                        }
                    },
                    41,
                    depth);
        }
        return value instanceof List
                ? ofElements(((List<?>) value).iterator(), 41, depth)
                : mix(value.hashCode());
    }

    /** {@link #NONE} if an element has none. */
    private static long ofElements(Iterator<?> elements, long hash, int depth) {
        while (elements.hasNext()) {
            long part = of(elements.next(), depth + 1);
            if (part == NONE) {
                return NONE;
            }
            hash = hash * 0x9e3779b97f4a7c15L + part;
        }
        return mix(hash);
    }

    private static long ofText(String text) {
        long hash = 0xcbf29ce484222325L;
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * 0x100000001b3L;
        }
        return mix(hash);
    }

    private static long ofNumber(Number number) {
        if (number instanceof Double || number instanceof Float) {
            return mix(Double.doubleToLongBits(number.doubleValue()));
        }
        if (number instanceof Long
                || number instanceof Integer
                || number instanceof Short
                || number instanceof Byte) {
            return mix(number.longValue());
        }
        return mix(number.hashCode());
    }

    /** Mixes the bits (the finaliser of SplitMix64); never {@link #NONE}. */
    static long mix(long bits) {
        long z = bits + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        z ^= z >>> 31;
        return z == NONE ? 1 : z;
    }
}
