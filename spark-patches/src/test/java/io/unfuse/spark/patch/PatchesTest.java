package io.unfuse.spark.patch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.unfuse.spark.SparkUnderTest;
import io.unfuse.spark.common.Recorder;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Patches the classes of the Spark on the class path; {@code EventsTest} and {@link
 * GeneratedCodeTest} then run them.
 */
class PatchesTest {
    private final Recorder recorder = new Recorder();

    @BeforeEach
    void record() {
        recorder.listen();
    }

    @AfterEach
    void restore() {
        SparkUnderTest.RECORDER.listen();
    }

    @Test
    void everyPlaceIsFoundOnce() throws IOException {
        TreeMap<String, List<String>> calls = ourCalls();
        TreeMap<String, List<String>> expected = new TreeMap<>();
        expected.put(
                "CodegenSupport",
                Arrays.asList(
                        "produce -> Regions.produce",
                        "consume -> Regions.outputs",
                        "consume -> Regions.consume"));
        expected.put(
                "WholeStageCodegenExec",
                Collections.singletonList("doCodeGen -> CodegenTap.generated"));
        expected.put(
                "PluginContainer$", Collections.singletonList("apply -> ProfilingPlugin.addTo"));
        expected.put(
                "SparkEnv",
                Collections.singletonList("createPythonWorker -> PythonWorkers.obtained"));
        if (SparkUnderTest.IS_4) {
            expected.put(
                    "JaninoCodeCompiler$", Collections.singletonList("compile -> SourceTap.cook"));
            expected.put(
                    "JdkCodeCompiler$", Collections.singletonList("doCompile -> SourceTap.task"));
        } else {
            expected.put(
                    "CodeGenerator$", Collections.singletonList("doCompile -> SourceTap.cook"));
        }
        assertEquals(expected, calls);
        assertEquals(Collections.emptyList(), recorder.logged());
    }

    @Test
    void placesOfRecordsAreFoundWhereRecordsAreFollowed() throws IOException {
        System.setProperty("unfuse.records", "/nowhere");
        TreeMap<String, List<String>> calls;
        try {
            calls = ourCalls();
        } finally {
            System.clearProperty("unfuse.records");
        }
        assertEquals(
                Arrays.asList(
                        "computeOrReadCheckpoint -> RecordTap.beginCached",
                        "computeOrReadCheckpoint -> RecordTap.endCached",
                        "iterator -> RecordTap.beginSource",
                        "iterator -> RecordTap.endSource"),
                distinct(calls.get("RDD")));
        assertEquals(
                Arrays.asList("runTask -> RecordTap.result"), distinct(calls.get("ResultTask")));
        assertEquals(
                Arrays.asList("write -> RecordTap.shuffle"),
                distinct(calls.get("ShuffleWriteProcessor")));
        assertEquals(
                Arrays.asList("read -> RecordTap.merged"),
                distinct(calls.get("BlockStoreShuffleReader")));
        assertEquals(Collections.emptyList(), recorder.logged());
    }

    private static List<String> distinct(List<String> calls) {
        return new ArrayList<>(new TreeSet<>(calls));
    }

    @Test
    void otherClassesAreLeftAlone() throws IOException {
        assertNull(
                Patches.patch(
                        "org/apache/spark/SparkContext",
                        classfile("org/apache/spark/SparkContext")));
        assertNull(Patches.patch("java/lang/Object", new byte[0]));
        assertEquals(Collections.emptyList(), recorder.logged());
    }

    @Test
    void anUnknownSparkIsReportedAndLeftAlone() throws IOException {
        byte[] unlike = classfile("org/apache/spark/SparkContext");
        assertNull(Patches.patch("org/apache/spark/sql/execution/WholeStageCodegenExec", unlike));
        assertEquals(1, recorder.logged().size());
        assertTrue(
                recorder.logged().get(0).contains("WholeStageCodegenPatch does not change it"),
                recorder.logged().get(0));
    }

    @Test
    void aBrokenClassFileIsReportedAndLeftAlone() {
        assertNull(
                Patches.patch(
                        "org/apache/spark/sql/execution/CodegenSupport", new byte[] {1, 2, 3}));
        assertNull(Patches.patch("org/apache/spark/sql/execution/CodegenSupport", null));
        assertEquals(1, recorder.logged().size(), "one line, however often");
    }

    private static byte[] classfile(String name) throws IOException {
        try (InputStream in =
                PatchesTest.class.getClassLoader().getResourceAsStream(name + ".class")) {
            return in == null ? null : in.readAllBytes();
        }
    }

    /** The calls of our code in each patched class. */
    private static TreeMap<String, List<String>> ourCalls() throws IOException {
        TreeMap<String, List<String>> calls = new TreeMap<>();
        for (String target : Patches.targets()) {
            byte[] original = classfile(target);
            if (original == null) {
                continue;
            }
            byte[] copy = original.clone();
            byte[] patched = Patches.patch(target, original);
            assertArrayEquals(copy, original, "the original must stay as it was");
            if (patched != null) {
                calls.put(target.substring(target.lastIndexOf('/') + 1), ourCalls(patched));
            }
        }
        return calls;
    }

    private static List<String> ourCalls(byte[] classfile) {
        List<String> calls = new ArrayList<>();
        new ClassReader(classfile)
                .accept(
                        new ClassVisitor(Opcodes.ASM9) {
                            @Override
                            public MethodVisitor visitMethod(
                                    int access,
                                    String name,
                                    String descriptor,
                                    String signature,
                                    String[] thrown) {
                                return new MethodVisitor(Opcodes.ASM9) {
                                    @Override
                                    public void visitMethodInsn(
                                            int opcode,
                                            String owner,
                                            String called,
                                            String parameters,
                                            boolean isInterface) {
                                        if (owner.startsWith("io/unfuse/")) {
                                            String where =
                                                    name.substring(name.lastIndexOf('$') + 1);
                                            assertTrue(
                                                    canBeCalled(owner, called, parameters),
                                                    owner + "." + called + parameters);
                                            calls.add(
                                                    where
                                                            + " -> "
                                                            + owner.substring(
                                                                    owner.lastIndexOf('/') + 1)
                                                            + "."
                                                            + called);
                                        }
                                    }
                                };
                            }
                        },
                        0);
        assertNotNull(calls);
        return calls;
    }

    /** Whether Spark's classes, which are in other packages, can call a static method. */
    private static boolean canBeCalled(String owner, String name, String descriptor) {
        try {
            Class<?> ours =
                    Class.forName(
                            owner.replace('/', '.'), false, PatchesTest.class.getClassLoader());
            return Modifier.isPublic(ours.getModifiers())
                    && Arrays.stream(ours.getMethods())
                            .anyMatch(
                                    method ->
                                            Modifier.isStatic(method.getModifiers())
                                                    && method.getName().equals(name)
                                                    && Type.getMethodDescriptor(method)
                                                            .equals(descriptor));
        } catch (ClassNotFoundException e) {
            return false;
        }
    }
}
