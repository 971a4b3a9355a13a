package io.unfuse.spark.bootstrap;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

class AgentLoaderTest {
    private static final Path CLASSES = Paths.get("target", "classes", "io", "unfuse", "spark");

    /** The version of class files that Java 8 loads. */
    private static final int JAVA_8 = 52;

    @Test
    void oldJvmsAreRefused() throws NotLoaded {
        for (String version : new String[] {"11", "17", "21", "25"}) {
            assertDoesNotThrow(() -> AgentLoader.checkJava(version));
        }
        for (String version : new String[] {"1.8", "10"}) {
            NotLoaded refusal = assertThrows(NotLoaded.class, () -> AgentLoader.checkJava(version));
            assertTrue(refusal.getMessage().contains("use Java 11"), refusal.getMessage());
        }
    }

    /** A class that an old JVM cannot load would end the job. */
    @Test
    void oldJvmsLoadThePlugin() throws IOException {
        int seen = 0;
        for (String folder : new String[] {".", "bootstrap"}) {
            for (File file : CLASSES.resolve(folder).toFile().listFiles()) {
                boolean isPublished =
                        file.getName().endsWith(".class")
                                && (folder.equals("bootstrap")
                                        || file.getName().startsWith("UnfusePlugin"));
                if (isPublished) {
                    byte[] bytes = Files.readAllBytes(file.toPath());
                    assertEquals(JAVA_8, bytes[7], file.getName());
                    seen++;
                }
            }
        }
        assertTrue(seen >= 7, seen + " classes");
    }

    @Test
    void muslIsAPlatformOfItsOwn(@TempDir Path dir) throws IOException {
        Path maps = dir.resolve("maps");
        String begin = "7f0000000000-7f0000001000 r-xp 00000000 fe:00 12 /lib/";
        Files.write(maps, (begin + "x86_64-linux-gnu/libc.so.6\n").getBytes());
        assertEquals("linux-x86_64", NativeParts.platform(maps));
        Files.write(maps, (begin + "ld-musl-x86_64.so.1\n").getBytes());
        assertEquals("linux-x86_64-musl", NativeParts.platform(maps));
        Files.write(maps, (begin + "ld-musl-x86_64.so.1/notes\n").getBytes());
        assertEquals("linux-x86_64", NativeParts.platform(maps));
    }

    /** Names of processors that JVMs use are names of folders in the jar. */
    @Test
    void eachProcessorHasPartsOfItsOwn(@TempDir Path dir) throws IOException {
        Path maps = Files.createFile(dir.resolve("maps"));
        String own = System.getProperty("os.arch");
        try {
            System.setProperty("os.arch", "amd64");
            assertEquals("linux-x86_64", NativeParts.platform(maps));
            System.setProperty("os.arch", "aarch64");
            assertEquals("linux-aarch64", NativeParts.platform(maps));
        } finally {
            System.setProperty("os.arch", own);
        }
    }

    @Test
    void settingsAreOptions() throws NotLoaded {
        Map<String, String> settings = new TreeMap<>();
        settings.put("rate", "50");
        settings.put("dir", "hdfs://nn:8020/p");
        assertEquals("dir=hdfs://nn:8020/p,rate=50", AgentLoader.options(settings));
        assertEquals("", AgentLoader.options(Collections.emptyMap()));
        settings.put("dir", "/tmp/a,b");
        NotLoaded refusal = assertThrows(NotLoaded.class, () -> AgentLoader.options(settings));
        assertTrue(refusal.getMessage().contains("spark.unfuse.dir=/tmp/a,b"));
    }

    @Test
    void executorsWriteWhereTheDriverDoes() {
        SparkConf conf = new SparkConf(false);
        assertEquals(new File("unfuse-profile").getAbsolutePath(), AgentLoader.profileDir(conf));
        for (String dir : new String[] {"/tmp/p", "hdfs://nn/p", "file:/tmp/p"}) {
            conf.set("spark.unfuse.dir", dir);
            assertEquals(dir, AgentLoader.profileDir(conf));
        }
    }
}
