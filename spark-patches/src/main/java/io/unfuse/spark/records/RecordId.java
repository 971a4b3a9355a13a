package io.unfuse.spark.records;

import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;

/**
 * What records are told by: 64 bits of their content, the same in every JVM, so that what a stage
 * writes and what the next one reads can be matched. Two records with one id are taken for one.
 */
final class RecordId {
    private RecordId() {}

    /** No id: the content does not say which record it is. */
    static final long NONE = 0;

    private static final int DEEPEST = 8;

    /** Characters that are hashed in less time than the clock takes twice. */
    private static final int SHORT = 32;

    /**
     * Whether equal objects of a class have equal hash codes; not so where nobody overrides {@code
     * hashCode}.
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

    /** Whether the id of a value takes next to no time, and no code of the user. */
    static boolean isShort(Object value) {
        return value instanceof String && ((String) value).length() <= SHORT
                || value instanceof Integer
                || value instanceof Long;
    }

    /** Of a key; keys of Spark's shuffles have a usable {@code hashCode}. */
    static long ofKey(Object key) {
        long id = of(key, 0);
        return id != NONE ? id : mix(key.hashCode());
    }

    /** Of a whole record; {@link #NONE} where it has parts that cannot be told from others. */
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
            // Linked lists are products too, as deep as they are long. What is made when it is
            // asked for may have no end.
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
     * By element where they are in order, so that equal ones have equal ids however they came
     * about.
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

    /** {@link #NONE} if one of them has none. */
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

    /** Spreads the bits (the finaliser of SplitMix64); never {@link #NONE}. */
    static long mix(long bits) {
        long z = bits + 0x9e3779b97f4a7c15L;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        z ^= z >>> 31;
        return z == NONE ? 1 : z;
    }
}
