package io.unfuse.spark.patch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Properties of a generated text for tests. */
final class GeneratedText {
    private GeneratedText() {}

    private static final Pattern MARK =
            Pattern.compile("/\\* (Begin|End)CodeRegion\\(((?:PRODUCE|CONSUME)_\\d+)\\) \\*/");

    /**
     * The lines without region comments, empty lines and indentation: exactly these are Spark's
     * own.
     */
    static List<String> statements(String text) {
        List<String> lines = new ArrayList<>();
        for (String line : text.split("\n")) {
            String trimmed = line.trim();
            if (!trimmed.isEmpty() && !MARK.matcher(trimmed).matches()) {
                lines.add(trimmed);
            }
        }
        return lines;
    }

    /**
     * Checks that regions are on separate lines, balanced and nested within methods; returns the
     * names of all.
     */
    static Set<String> regions(String text) {
        Set<String> names = new TreeSet<>();
        Deque<String> open = new ArrayDeque<>();
        for (String line : text.split("\n")) {
            Matcher mark = MARK.matcher(line);
            if (!mark.find()) {
                assertTrue(!line.contains("CodeRegion("), line);
                // Public methods occur inside, in anonymous classes.
                boolean isMethod = line.startsWith("private ") || line.startsWith("protected ");
                assertTrue(
                        !isMethod || open.isEmpty(),
                        () -> "region " + open.peek() + " goes beyond its method: " + line);
                continue;
            }
            assertEquals(mark.group(), line.trim(), "a region comment has its line to itself");
            if (mark.group(1).equals("Begin")) {
                open.push(mark.group(2));
                names.add(mark.group(2));
            } else {
                assertEquals(open.poll(), mark.group(2), "regions are nested");
            }
        }
        assertTrue(open.isEmpty(), () -> "never closed: " + open);
        return names;
    }
}
