package io.unfuse.spark.ship;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;

class SegmentShipperTest {
    @TempDir Path dir;

    private Path write(String path, String text) throws IOException {
        Path file = dir.resolve(path);
        Files.createDirectories(file.getParent());
        return Files.write(file, text.getBytes());
    }

    private SegmentShipper shipper(String spool, String target) {
        return new SegmentShipper(
                dir.resolve(spool).toFile(),
                dir.resolve(target).toUri().toString(),
                new String[] {"sources", "samples", "processes"},
                new Configuration());
    }

    private String[] listed(String folder) {
        String[] names = dir.resolve(folder).toFile().list();
        Arrays.sort(names);
        return names;
    }

    @Test
    void finishedFilesAreMovedAndNoOthers() throws IOException {
        write("unfuse-spool-a/unfuse.json", "{}");
        write("unfuse-spool-a/samples/h-1-a-00000.parquet", "samples");
        write("unfuse-spool-a/samples/h-1-a-00001.tmp", "half");
        write("unfuse-spool-a/sources/0123.java", "class A {}");
        shipper("unfuse-spool-a", "target").shipSpool(dir.resolve("unfuse-spool-a").toFile());
        assertArrayEquals(new String[] {"samples", "sources", "unfuse.json"}, listed("target"));
        assertArrayEquals(new String[] {"h-1-a-00000.parquet"}, listed("target/samples"));
        assertArrayEquals(new String[] {"h-1-a-00001.tmp"}, listed("unfuse-spool-a/samples"));
        assertEquals(
                "class A {}",
                new String(Files.readAllBytes(dir.resolve("target/sources/0123.java"))));
        assertTrue(
                Files.exists(dir.resolve("unfuse-spool-a/unfuse.json")), "the writer asks for it");
    }

    @Test
    void whatOthersLeftIsCopiedUnlessTheyStillWrite() throws IOException {
        write("unfuse-spool-a/unfuse.json", "{}");
        for (String other : Arrays.asList("ended", "killed", "writing")) {
            String spool = "unfuse-spool-" + other;
            write(spool + "/unfuse.json", "{}");
            write(
                    spool + "/target.uri",
                    new org.apache.hadoop.fs.Path(dir.resolve("target").toUri()).toString());
            write(spool + "/samples/h-1-" + other + "-00000.parquet", "samples");
            if (!other.equals("ended")) {
                write(spool + "/live/h-1-" + other, "");
            }
        }
        assertTrue(
                dir.resolve("unfuse-spool-killed/live")
                        .toFile()
                        .setLastModified(System.currentTimeMillis() - 3_600_000));
        SegmentShipper shipper = shipper("unfuse-spool-a", "target");
        shipper.shipSpool(dir.resolve("unfuse-spool-a").toFile());
        shipper.adopt();
        assertArrayEquals(
                new String[] {"h-1-ended-00000.parquet", "h-1-killed-00000.parquet"},
                listed("target/samples"));
        assertArrayEquals(
                new String[] {"unfuse-spool-a", "unfuse-spool-writing"},
                Arrays.stream(listed("."))
                        .filter(name -> name.startsWith("unfuse-spool-"))
                        .toArray(String[]::new));
    }

    @Test
    void spoolsThatOthersCanChangeAreLeftAlone() throws IOException {
        write("unfuse-spool-a/unfuse.json", "{}");
        for (String other : Arrays.asList("open", "linked")) {
            String spool = "unfuse-spool-" + other;
            write(spool + "/unfuse.json", "{}");
            write(
                    spool + "/target.uri",
                    new org.apache.hadoop.fs.Path(dir.resolve("target").toUri()).toString());
            write(spool + "/samples/h-1-" + other + "-00000.parquet", "samples");
        }
        Files.setPosixFilePermissions(
                dir.resolve("unfuse-spool-open"), PosixFilePermissions.fromString("rwxrwxrwx"));
        Files.move(dir.resolve("unfuse-spool-linked"), dir.resolve("elsewhere"));
        Files.createSymbolicLink(dir.resolve("unfuse-spool-linked"), dir.resolve("elsewhere"));
        SegmentShipper shipper = shipper("unfuse-spool-a", "target");
        shipper.shipSpool(dir.resolve("unfuse-spool-a").toFile());
        shipper.adopt();
        assertArrayEquals(new String[] {"unfuse.json"}, listed("target"));
        assertEquals("rw-------", permissions("unfuse-spool-a/target.uri"));
        // Another user replaces the spool by another directory.
        Files.move(dir.resolve("unfuse-spool-a"), dir.resolve("moved"));
        write("unfuse-spool-a/samples/h-1-a-00000.parquet", "samples");
        assertThrows(
                IOException.class, () -> shipper.shipSpool(dir.resolve("unfuse-spool-a").toFile()));
        assertArrayEquals(new String[] {"unfuse.json"}, listed("target"));
    }

    private String permissions(String file) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(dir.resolve(file)));
    }

    @Test
    void whatCannotBeCopiedWaits() throws IOException {
        write("unfuse-spool-a/unfuse.json", "{}");
        Path segment = write("unfuse-spool-a/samples/h-1-a-00000.parquet", "samples");
        Path inTheWay = write("target", "a file");
        SegmentShipper shipper = shipper("unfuse-spool-a", "target");
        assertThrows(
                IOException.class, () -> shipper.shipSpool(dir.resolve("unfuse-spool-a").toFile()));
        assertTrue(Files.exists(segment));
        Files.delete(inTheWay);
        shipper.shipSpool(dir.resolve("unfuse-spool-a").toFile());
        assertFalse(Files.exists(segment));
        assertArrayEquals(new String[] {"samples", "unfuse.json"}, listed("target"));
    }
}
