package io.unfuse.spark.common;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes one JSON object, field by field, without any library: Spark's Jackson belongs to the job,
 * and we must not depend on its version. It writes UTF-8 directly: there is one object for each
 * task, and copies were most of its cost.
 *
 * <pre>{@code
 * new Json().field("type", "app").field("pid", 7).array("list").item().field("a", 1).end().endArray().utf8()
 * }</pre>
 *
 * Text that Unicode cannot express (half a surrogate pair) becomes U+FFFD: strict readers reject
 * the escape of a lone half.
 */
public final class Json {
    private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

    private byte[] out;
    private int length;
    private boolean first = true;

    /** For an object of typical length. */
    public Json() {
        this(256);
    }

    /** For an object of about {@code expectedLength} bytes. */
    public Json(int expectedLength) {
        out = new byte[expectedLength + 2];
        put('{');
    }

    /** A text, or null. */
    public Json field(String name, String value) {
        name(name);
        string(value);
        return this;
    }

    /** A number. */
    public Json field(String name, long value) {
        name(name);
        ascii(Long.toString(value));
        return this;
    }

    /** True or false. */
    public Json field(String name, boolean value) {
        name(name);
        ascii(Boolean.toString(value));
        return this;
    }

    /** A number, or null. */
    public Json field(String name, Number value) {
        name(name);
        ascii(value == null ? "null" : Long.toString(value.longValue()));
        return this;
    }

    /** A number; null if JSON cannot express it. */
    public Json field(String name, double value) {
        name(name);
        ascii(Double.isNaN(value) || Double.isInfinite(value) ? "null" : Double.toString(value));
        return this;
    }

    /** An array of numbers. */
    public Json numbers(String name, Iterable<Long> values) {
        name(name);
        put('[');
        boolean comma = false;
        for (long value : values) {
            if (comma) {
                put(',');
            }
            comma = true;
            ascii(Long.toString(value));
        }
        put(']');
        return this;
    }

    /** An array of texts, some of which may be null. */
    public Json strings(String name, Iterable<String> values) {
        name(name);
        put('[');
        boolean comma = false;
        for (String value : values) {
            if (comma) {
                put(',');
            }
            comma = true;
            string(value);
        }
        put(']');
        return this;
    }

    /** Opens an array of objects; each {@link #item()} must be closed with {@link #end()}. */
    public Json array(String name) {
        name(name);
        put('[');
        first = true;
        return this;
    }

    /** Closes the array. */
    public Json endArray() {
        put(']');
        first = false;
        return this;
    }

    /** Opens an object in the array. */
    public Json item() {
        if (!first) {
            put(',');
        }
        put('{');
        first = true;
        return this;
    }

    /** Closes the object in the array. */
    public Json end() {
        put('}');
        first = false;
        return this;
    }

    /** The finished object. */
    public byte[] utf8() {
        byte[] whole = Arrays.copyOf(out, length + 1);
        whole[length] = '}';
        return whole;
    }

    @Override
    public String toString() {
        return new String(utf8(), StandardCharsets.UTF_8);
    }

    private void name(String name) {
        if (!first) {
            put(',');
        }
        first = false;
        string(name);
        put(':');
    }

    private void string(String value) {
        if (value == null) {
            ascii("null");
            return;
        }
        put('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
                escape(c);
            } else if (c < 0x80) {
                put(c);
            } else if (Character.isHighSurrogate(c)
                    && i + 1 < value.length()
                    && Character.isLowSurrogate(value.charAt(i + 1))) {
                utf8(Character.toCodePoint(c, value.charAt(++i)));
            } else {
                utf8(Character.isSurrogate(c) ? '\ufffd' : c);
            }
        }
        put('"');
    }

    private void escape(char c) {
        put('\\');
        switch (c) {
            case '"':
            case '\\':
                put(c);
                break;
            case '\n':
                put('n');
                break;
            case '\r':
                put('r');
                break;
            case '\t':
                put('t');
                break;
            default:
                ascii("u00");
                put(HEX[c >> 4]);
                put(HEX[c & 15]);
        }
    }

    /** Writes a code point above 0x7f. */
    private void utf8(int point) {
        if (point < 0x800) {
            put(0xc0 | point >> 6);
        } else {
            if (point < 0x10000) {
                put(0xe0 | point >> 12);
            } else {
                put(0xf0 | point >> 18);
                put(0x80 | point >> 12 & 0x3f);
            }
            put(0x80 | point >> 6 & 0x3f);
        }
        put(0x80 | point & 0x3f);
    }

    private void ascii(String text) {
        for (int i = 0; i < text.length(); i++) {
            put(text.charAt(i));
        }
    }

    private void put(int b) {
        if (length == out.length) {
            out = Arrays.copyOf(out, 2 * length);
        }
        out[length++] = (byte) b;
    }
}
