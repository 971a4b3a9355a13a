package io.unfuse.spark.patch;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.unfuse.spark.Queries;
import io.unfuse.spark.SparkUnderTest;

import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.expressions.codegen.GeneratedClass;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.codehaus.commons.compiler.CompileException;
import org.codehaus.commons.compiler.InternalCompilerException;
import org.codehaus.janino.ClassBodyEvaluator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.commons.CodeSizeEvaluator;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** The line tables of generated classes point to lines of the saved texts. */
class LineTablesTest {
    private static final String OUTER = "org.apache.spark.sql.catalyst.expressions.GeneratedClass";

    private static final String[] QUERIES = {
        "scan, filter, broadcast join, aggregate",
        "sort merge join",
        "window",
        "explode",
        "many columns",
    };

    static boolean hasJdkCompiler() {
        return SparkUnderTest.IS_4;
    }

    @Test
    void janinoClassesPointIntoTheSavedText() throws Exception {
        Set<String> files = check(compiled(janino(), QUERIES));
        for (String file : files) {
            assertEquals(file, SourceTap.hash(SparkUnderTest.RECORDER.sources().get(file)));
        }
    }

    @Test
    @EnabledIf("hasJdkCompiler")
    void jdkClassesPointIntoTheSavedText() throws Exception {
        String query = "select k, count(*) from facts where id <> 1042 group by k";
        List<WholeStageCodegenExec> stages = SparkUnderTest.stages(query);
        String body = body(stages.get(stages.size() - 1));
        Set<String> files = files(compiled(jdk(), query));
        assertTrue(
                files.contains(SourceTap.hash(body)),
                "the file is named after the body, as the codegen event is");
        String unit = SparkUnderTest.RECORDER.sources().get(SourceTap.hash(body));
        assertTrue(
                unit.contains("class GeneratedClass extends"),
                "the saved text is the compilation unit");
        check(compiled(jdk(), QUERIES));
    }

    @Test
    @EnabledIf("hasJdkCompiler")
    void bothCompilersInOneProcessKeepTheirTextsApart() throws Exception {
        Set<String> janino = check(compiled(janino(), QUERIES));
        Set<String> jdk = check(compiled(jdk(), QUERIES));
        assertEquals(janino.size(), jdk.size());
        janino.retainAll(jdk);
        assertTrue(janino.isEmpty(), () -> "one file for two texts: " + janino);
    }

    @Test
    void sparkMeasuresTheSameCodeSize() throws Exception {
        for (String name : QUERIES) {
            for (WholeStageCodegenExec stage : SparkUnderTest.stages(query(name))) {
                String body = body(stage);
                ClassBodyEvaluator plain = evaluator();
                plain.cook("generated.java", body);
                ClassBodyEvaluator tapped = evaluator();
                SourceTap.cook(tapped, "generated.java", body);
                assertEquals(codeSizes(plain.getBytecodes()), codeSizes(tapped.getBytecodes()));
                assertTrue(
                        !Arrays.equals(
                                plain.getBytecodes().get(OUTER), tapped.getBytecodes().get(OUTER)));
            }
        }
    }

    @Test
    void aClassThatFillsItsConstantPoolStillCompiles() throws Exception {
        // The fullest class is between one that compiles and one that does not; the tables need a
        // few more entries.
        int fits = 30_000;
        int tooMany = 33_000;
        while (tooMany - fits > 1) {
            int middle = (fits + tooMany) / 2;
            if (compiles(middle)) {
                fits = middle;
            } else {
                tooMany = middle;
            }
        }
        ClassBodyEvaluator full = evaluator();
        SourceTap.cook(full, "generated.java", withConstants(fits));
        ClassBodyEvaluator plain = evaluator();
        plain.cook("generated.java", withConstants(fits));
        assertArrayEquals(
                plain.getBytecodes().get(OUTER),
                full.getBytecodes().get(OUTER),
                "compiled again, without tables");
        assertEquals(OUTER, full.getClazz().getName());

        String tooFull = withConstants(tooMany);
        Exception sparks =
                assertThrows(Exception.class, () -> evaluator().cook("generated.java", tooFull));
        Exception ours =
                assertThrows(
                        Exception.class,
                        () -> SourceTap.cook(evaluator(), "generated.java", tooFull));
        assertEquals(
                sparks.getClass(), ours.getClass(), "Spark sees the error that it would have seen");
        assertEquals(sparks.getMessage(), ours.getMessage());
    }

    private static boolean compiles(int constants) throws Exception {
        try {
            evaluator().cook("generated.java", withConstants(constants));
            return true;
        } catch (CompileException | InternalCompilerException e) {
            return false;
        }
    }

    private static String withConstants(int count) {
        StringBuilder body =
                new StringBuilder("public Object generate(Object[] references) { return null; }\n");
        for (int i = 0; i < count; i++) {
            if (i % 1000 == 0) {
                body.append(i == 0 ? "" : "}\n")
                        .append("void fill")
                        .append(i)
                        .append("(Object o) {\n");
            }
            body.append("o = \"c").append(i).append("\";\n");
        }
        return body.append("}\n").toString();
    }

    /** A compiler with Spark's configuration. */
    private static ClassBodyEvaluator evaluator() {
        ClassBodyEvaluator evaluator = new ClassBodyEvaluator();
        evaluator.setParentClassLoader(LineTablesTest.class.getClassLoader());
        evaluator.setClassName(OUTER);
        evaluator.setDefaultImports(
                "org.apache.spark.unsafe.Platform",
                "org.apache.spark.sql.catalyst.InternalRow",
                "org.apache.spark.sql.catalyst.expressions.UnsafeRow",
                "org.apache.spark.unsafe.types.UTF8String",
                "org.apache.spark.sql.types.Decimal",
                "org.apache.spark.unsafe.types.CalendarInterval",
                "org.apache.spark.sql.catalyst.util.ArrayData",
                "org.apache.spark.sql.catalyst.expressions.UnsafeArrayData",
                "org.apache.spark.sql.catalyst.util.MapData",
                "org.apache.spark.sql.catalyst.expressions.UnsafeMapData",
                "org.apache.spark.sql.catalyst.expressions.Expression",
                "org.apache.spark.TaskContext",
                "org.apache.spark.TaskKilledException",
                "org.apache.spark.executor.InputMetrics",
                "org.apache.spark.sql.errors.QueryExecutionErrors");
        evaluator.setExtendedClass(GeneratedClass.class);
        return evaluator;
    }

    /** Length of the code of each method, as in Spark's {@code ByteCodeStats}. */
    private static Map<String, Integer> codeSizes(Map<String, byte[]> classes) {
        Map<String, Integer> sizes = new TreeMap<>();
        classes.forEach(
                (name, bytes) ->
                        new ClassReader(bytes)
                                .accept(
                                        new ClassVisitor(Opcodes.ASM9) {
                                            @Override
                                            public MethodVisitor visitMethod(
                                                    int access,
                                                    String method,
                                                    String descriptor,
                                                    String signature,
                                                    String[] thrown) {
                                                return new CodeSizeEvaluator(null) {
                                                    @Override
                                                    public void visitEnd() {
                                                        sizes.put(
                                                                name + "." + method + descriptor,
                                                                getMaxSize());
                                                    }
                                                };
                                            }
                                        },
                                        0));
        return sizes;
    }

    private static Object janino() throws Exception {
        return SparkUnderTest.IS_4 ? compiler("JaninoCodeCompiler$") : null;
    }

    private static Object jdk() throws Exception {
        return compiler("JdkCodeCompiler$");
    }

    private static Object compiler(String name) throws Exception {
        return Class.forName("org.apache.spark.sql.catalyst.expressions.codegen." + name)
                .getField("MODULE$")
                .get(null);
    }

    private static String query(String name) {
        return Queries.ALL.getOrDefault(name, name);
    }

    private static String body(WholeStageCodegenExec stage) {
        return ((CodeAndComment) stage.doCodeGen()._2()).body();
    }

    /**
     * Compiles the stages of the queries and loads every class. If the compiler is null, {@code
     * CodeGenerator} compiles: Spark 3.5 has only one compiler, and caches its classes.
     */
    private static Map<String, byte[]> compiled(Object compiler, String... queries)
            throws Exception {
        TestAgent.GENERATED.clear();
        for (String name : queries) {
            for (WholeStageCodegenExec stage : SparkUnderTest.stages(query(name))) {
                Object code = stage.doCodeGen()._2();
                Object generated =
                        compiler == null
                                ? CodeGenerator.compile((CodeAndComment) code)._1()
                                : ((scala.Tuple2<?, ?>)
                                                SparkUnderTest.call(compiler, "compile", code))
                                        ._1();
                for (Class<?> inner : generated.getClass().getDeclaredClasses()) {
                    inner.getDeclaredClasses();
                }
            }
        }
        return new HashMap<>(TestAgent.GENERATED);
    }

    private static Set<String> files(Map<String, byte[]> classes) {
        Set<String> hashes = new HashSet<>();
        for (byte[] classfile : classes.values()) {
            new ClassReader(classfile).accept(new LineChecker(hashes, new int[1]), 0);
        }
        return hashes;
    }

    /** Checks every class; returns the hashes in their file names. */
    private static Set<String> check(Map<String, byte[]> classes) {
        assertFalse(classes.isEmpty());
        Set<String> hashes = new HashSet<>();
        int[] calls = new int[1];
        for (byte[] classfile : classes.values()) {
            new ClassReader(classfile).accept(new LineChecker(hashes, calls), 0);
        }
        assertTrue(
                calls[0] > 100,
                "calls checked: " + calls[0] + " in " + classes.size() + " classes");
        return hashes;
    }

    /** Checks that a call of a generated method is on a line of the text that has its name. */
    private static final class LineChecker extends ClassVisitor {
        private final Set<String> hashes;
        private final int[] calls;
        private String owner;
        private String[] text;

        LineChecker(Set<String> hashes, int[] calls) {
            super(Opcodes.ASM9);
            this.hashes = hashes;
            this.calls = calls;
        }

        @Override
        public void visit(
                int version,
                int access,
                String name,
                String signature,
                String superName,
                String[] interfaces) {
            owner = name;
        }

        @Override
        public void visitSource(String source, String debug) {
            assertTrue(source.matches("generated_[0-9a-f]{16}\\.java"), source);
            String hash =
                    source.substring("generated_".length(), source.length() - ".java".length());
            hashes.add(hash);
            assertNotNull(SparkUnderTest.RECORDER.sources().get(hash), source + " was not saved");
            text = SparkUnderTest.RECORDER.sources().get(hash).split("\n", -1);
        }

        @Override
        public MethodVisitor visitMethod(
                int access, String name, String descriptor, String signature, String[] thrown) {
            return new MethodVisitor(Opcodes.ASM9) {
                private int line;

                @Override
                public void visitLineNumber(int number, Label start) {
                    line = number;
                    assertNotNull(text, owner + " has no source file");
                    assertTrue(
                            number >= 1 && number <= text.length,
                            owner + "." + name + ": line " + number);
                }

                @Override
                public void visitMethodInsn(
                        int opcode,
                        String called,
                        String method,
                        String parameters,
                        boolean isInterface) {
                    // Janino makes private methods static and appends a dollar sign.
                    String written =
                            method.endsWith("$")
                                    ? method.substring(0, method.length() - 1)
                                    : method;
                    if (called.equals(owner) && written.matches("\\w+_do\\w+_\\d+")) {
                        assertTrue(line > 0, owner + "." + name + " has no lines");
                        assertTrue(
                                text[line - 1].contains(written),
                                owner
                                        + "."
                                        + name
                                        + " calls "
                                        + method
                                        + " in line "
                                        + line
                                        + ": "
                                        + text[line - 1]);
                        calls[0]++;
                    }
                }
            };
        }
    }
}
