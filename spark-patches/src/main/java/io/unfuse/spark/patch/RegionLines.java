package io.unfuse.spark.patch;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The operator of each line of recently compiled texts, by the file name of their classes. */
final class RegionLines {
    private RegionLines() {}

    /** Number of texts remembered: classes of a text are loaded soon after it is compiled. */
    private static final int REMEMBERED = 200;

    private static final Pattern MARK =
            Pattern.compile("/\\* (Begin|End)CodeRegion\\((?:PRODUCE|CONSUME)_(\\d{1,9})\\) \\*/");

    private static final Map<String, int[]> LINES =
            Collections.synchronizedMap(
                    new LinkedHashMap<>() {
                        @Override
                        protected boolean removeEldestEntry(Map.Entry<String, int[]> eldest) {
                            return size() > REMEMBERED;
                        }
                    });

    /** Remembers a text with regions. */
    static void remember(String file, String text) {
        if (text.contains("/* BeginCodeRegion(")) {
            LINES.put(file, parse(text));
        }
    }

    /**
     * Region numbers by line (from 1), -1 outside all regions; null for a text without regions, or
     * one that was compiled long ago.
     */
    static int[] of(String file) {
        return file == null ? null : LINES.get(file);
    }

    private static int[] parse(String text) {
        List<String> lines = text.lines().collect(Collectors.toList());
        int[] operators = new int[lines.size() + 1];
        Deque<Integer> open = new ArrayDeque<>();
        operators[0] = -1;
        for (int line = 0; line < lines.size(); line++) {
            Matcher mark = MARK.matcher(lines.get(line));
            while (mark.find()) {
                if (mark.group(1).equals("Begin")) {
                    open.push(Integer.valueOf(mark.group(2)));
                } else {
                    open.poll();
                }
            }
            operators[line + 1] = open.isEmpty() ? -1 : open.peek();
        }
        return operators;
    }
}
