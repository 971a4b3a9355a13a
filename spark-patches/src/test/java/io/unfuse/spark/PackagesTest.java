package io.unfuse.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassReader;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Packages have no cyclic dependencies. */
class PackagesTest {
    private static final Path CLASSES = Paths.get("target", "classes", "io", "unfuse", "spark");

    /**
     * The name of one of our classes: in descriptors, in signatures, and in the strings from which
     * patches make calls.
     */
    private static final Pattern OURS = Pattern.compile("io/unfuse/spark/(?:([a-z]+)/)?[A-Z]");

    private static final String ROOT = "(root)";

    @Test
    void thereAreNoCirclesBetweenPackages() throws IOException {
        Map<String, Set<String>> needs = new TreeMap<>();
        try (Stream<Path> files = Files.walk(CLASSES)) {
            List<Path> classes =
                    files.filter(file -> file.toString().endsWith(".class"))
                            .collect(Collectors.toList());
            for (Path file : classes) {
                Path folder = CLASSES.relativize(file).getParent();
                String from = folder == null ? ROOT : folder.toString();
                needs.computeIfAbsent(from, name -> new TreeSet<>())
                        .addAll(needs(Files.readAllBytes(file), from));
            }
        }
        // The search finds known dependencies, also those only in texts.
        assertTrue(needs.get(ROOT).contains("ship"), needs.toString());
        assertTrue(needs.get("patch").contains(ROOT), needs.toString());
        assertEquals(Collections.emptySet(), needs.get("common"), "common needs no other package");
        assertEquals(Collections.emptyList(), circle(needs), needs.toString());
    }

    @Test
    void aCircleIsFound() {
        Map<String, Set<String>> needs = new TreeMap<>();
        needs.put("a", Collections.singleton("d"));
        needs.put("b", Collections.singleton("c"));
        needs.put("c", new TreeSet<>(Arrays.asList("a", "b")));
        needs.put("d", Collections.emptySet());
        assertEquals(Arrays.asList("b", "c"), circle(needs));
    }

    private static Set<String> needs(byte[] bytes, String from) {
        ClassReader reader = new ClassReader(bytes);
        Set<String> found = new TreeSet<>();
        for (int item = 1; item < reader.getItemCount(); item++) {
            int at = reader.getItem(item);
            // Tag 1 marks a UTF-8 constant. All names of classes are such constants.
            if (at > 0 && reader.readByte(at - 1) == 1) {
                Matcher ours = OURS.matcher(utf8(reader, at));
                while (ours.find()) {
                    found.add(ours.group(1) == null ? ROOT : ours.group(1));
                }
            }
        }
        found.remove(from);
        return found;
    }

    private static String utf8(ClassReader reader, int at) {
        int length = reader.readUnsignedShort(at);
        StringBuilder text = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            text.append((char) reader.readByte(at + 2 + i));
        }
        return text.toString();
    }

    /**
     * The packages that remain when packages without dependencies are removed: cycles, and packages
     * that depend on them.
     */
    private static List<String> circle(Map<String, Set<String>> needs) {
        Map<String, Set<String>> left = new TreeMap<>();
        needs.forEach((name, others) -> left.put(name, new TreeSet<>(others)));
        // A package without dependencies on the remaining ones is in no cycle.
        while (left.values().removeIf(Set::isEmpty)) {
            left.values().forEach(others -> others.retainAll(left.keySet()));
        }
        return new ArrayList<>(left.keySet());
    }
}
