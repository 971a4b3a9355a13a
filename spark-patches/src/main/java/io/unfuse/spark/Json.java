package io.unfuse.spark;

import java.nio.charset.StandardCharsets;

/**
 * Writes one JSON object, field by field, without any library: Spark's own Jackson is the job's, and its version is not ours to
 * depend on.
 *
 * <pre>{@code
 * new Json().field("type", "app").field("pid", 7).array("list").item().field("a", 1).end().endArray().utf8()
 * }</pre>
 *
 * What Unicode cannot express (half a surrogate pair) becomes U+FFFD: strict readers refuse the escape of a lone half.
 */
final class Json {
    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private final StringBuilder out;
    private boolean first = true;

    Json() {
        this(256);
    }

    Json(int expectedLength) {
        out = new StringBuilder(expectedLength).append('{');
    }

    Json field(String name, String value) {
        name(name);
        string(value);
        return this;
    }

    Json field(String name, long value) {
        name(name);
        out.append(value);
        return this;
    }

    Json field(String name, boolean value) {
        name(name);
        out.append(value);
        return this;
    }

    /** A number, or null. */
    Json field(String name, Number value) {
        name(name);
        if (value == null) {
            out.append("null");
        } else {
            out.append(value.longValue());
        }
        return this;
    }

    Json strings(String name, Iterable<String> values) {
        name(name);
        out.append('[');
        boolean comma = false;
        for (String value : values) {
            if (comma) {
                out.append(',');
            }
            comma = true;
            string(value);
        }
        out.append(']');
        return this;
    }

    /** Opens an array of objects; each {@link #item()} must be closed with {@link #end()}. */
    Json array(String name) {
        name(name);
        out.append('[');
        first = true;
        return this;
    }

    Json endArray() {
        out.append(']');
        first = false;
        return this;
    }

    Json item() {
        if (!first) {
            out.append(',');
        }
        out.append('{');
        first = true;
        return this;
    }

    Json end() {
        out.append('}');
        first = false;
        return this;
    }

    /** The finished object. */
    byte[] utf8() {
        return toString().getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String toString() {
        return out + "}";
    }

    private void name(String name) {
        if (!first) {
            out.append(',');
        }
        first = false;
        string(name);
        out.append(':');
    }

    private void string(String value) {
        if (value == null) {
            out.append("null");
            return;
        }
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            switch (c) {
                case '"':
                    out.append("\\\"");
                    break;
                case '\\':
                    out.append("\\\\");
                    break;
                case '\n':
                    out.append("\\n");
                    break;
                case '\r':
                    out.append("\\r");
                    break;
                case '\t':
                    out.append("\\t");
                    break;
                default:
                    if (c < 0x20 || c == 0x7f) {
                        escape(c);
                    } else if (Character.isHighSurrogate(c) && i + 1 < value.length()
                            && Character.isLowSurrogate(value.charAt(i + 1))) {
                        out.append(c).append(value.charAt(++i));
                    } else if (Character.isSurrogate(c)) {
                        out.append('\ufffd');
                    } else {
                        out.append(c);
                    }
            }
        }
        out.append('"');
    }

    private void escape(char c) {
        out.append("\\u").append(HEX[c >> 12]).append(HEX[c >> 8 & 15]).append(HEX[c >> 4 & 15]).append(HEX[c & 15]);
    }
}
