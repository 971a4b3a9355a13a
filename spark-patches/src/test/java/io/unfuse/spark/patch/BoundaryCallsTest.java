package io.unfuse.spark.patch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.unfuse.spark.SparkUnderTest;

import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.commons.CodeSizeEvaluator;

import java.util.ArrayList;
import java.util.List;

/**
 * The calls that {@code BoundaryCalls} inserts behind numbers that operators compute. All other
 * tests that run Spark check that generated classes load with these calls.
 */
class BoundaryCallsTest {
    private static final String FILE = "generated_of_the_test.java";
    private static final String TEXT =
            String.join(
                    "\n",
                    "/* BeginCodeRegion(PRODUCE_1) */", // 1
                    "line 2",
                    "line 3",
                    "/* BeginCodeRegion(CONSUME_0) */", // 4
                    "line 5",
                    "line 6",
                    "/* EndCodeRegion(CONSUME_0) */",
                    "line 8",
                    "/* EndCodeRegion(PRODUCE_1) */",
                    "line 10");

    /** Size of the shortest method that passes a number on, bytes. */
    private static final int REST = 5;

    private interface Code {
        void write(MethodVisitor method);
    }

    @Test
    void numbersOfOperatorsArePassedOn() {
        assertEquals(
                List.of("J", "J"),
                calls(
                        method -> {
                            line(method, 2);
                            product(method, 2);
                            line(method, 5);
                            product(method, 4);
                            line(method, 10);
                            product(method, 6);
                        }));
    }

    @Test
    void constantsAreNotPassedOn() {
        assertEquals(
                List.of(),
                calls(
                        method -> {
                            line(method, 2);
                            method.visitInsn(Opcodes.LCONST_1);
                            method.visitVarInsn(Opcodes.LSTORE, 2);
                            method.visitLdcInsn(42);
                            method.visitVarInsn(Opcodes.ISTORE, 4);
                        }));
    }

    @Test
    void objectsAndAnswersAreNotPassedOn() {
        assertEquals(
                List.of(),
                calls(
                        method -> {
                            line(method, 2);
                            method.visitMethodInsn(
                                    Opcodes.INVOKESTATIC,
                                    "java/lang/System",
                                    "lineSeparator",
                                    "()Ljava/lang/String;",
                                    false);
                            method.visitVarInsn(Opcodes.ASTORE, 2);
                            method.visitMethodInsn(
                                    Opcodes.INVOKESTATIC,
                                    "java/lang/Thread",
                                    "interrupted",
                                    "()Z",
                                    false);
                            method.visitVarInsn(Opcodes.ISTORE, 2);
                        }));
    }

    /** Beyond these sizes HotSpot stops inlining or compiling a method. */
    @Test
    void aMethodDoesNotGrowOverALimit() {
        for (int limit : new int[] {325, 8000}) {
            int passing = 0;
            for (int size = limit - 12; size <= limit + 4; size++) {
                int padding = size;
                byte[] before =
                        class_(
                                method -> {
                                    line(method, 2);
                                    product(method, 2);
                                    for (int at = REST; at < padding; at++) {
                                        method.visitInsn(Opcodes.NOP);
                                    }
                                });
                RegionLines.remember(FILE, TEXT);
                byte[] after = BoundaryCalls.insert(before);
                int was = size(before);
                int is = after == null ? was : size(after);
                assertTrue(was > limit || is <= limit, was + " became " + is);
                passing += is > was ? 1 : 0;
            }
            assertTrue(passing > 4, "others have their calls");
        }
    }

    @Test
    void aClassOfAnUnknownTextStays() {
        byte[] classfile =
                class_(
                        "generated_unknown.java",
                        method -> {
                            line(method, 2);
                            product(method, 2);
                        });
        RegionLines.remember("generated_another.java", TEXT);
        assertNull(BoundaryCalls.insert(classfile));
    }

    /** With classes that Spark generates, whose operators compute numbers. */
    @Test
    void generatedClassesPassNumbersOn() throws Exception {
        TestAgent.GENERATED.clear();
        SparkUnderTest.run(
                "select d.v, sum(f.amount * 3 + f.id) from facts f join dim d on f.k = d.k"
                        + " where f.id * 7 > 100 group by d.v");
        int calls = 0;
        for (byte[] classfile : TestAgent.GENERATED.values()) {
            byte[] changed = BoundaryCalls.insert(classfile);
            if (changed != null) {
                calls += calls(changed).size();
            }
        }
        assertTrue(calls > 0);
    }

    private static List<String> calls(Code code) {
        RegionLines.remember(FILE, TEXT);
        byte[] changed = BoundaryCalls.insert(class_(code));
        return changed == null ? List.of() : calls(changed);
    }

    /** Types of the values passed, in the order of the code. */
    private static List<String> calls(byte[] classfile) {
        List<String> types = new ArrayList<>();
        new ClassReader(classfile)
                .accept(
                        new ClassVisitor(Opcodes.ASM9) {
                            @Override
                            public MethodVisitor visitMethod(
                                    int access,
                                    String name,
                                    String descriptor,
                                    String signature,
                                    String[] exceptions) {
                                return new MethodVisitor(Opcodes.ASM9) {
                                    @Override
                                    public void visitMethodInsn(
                                            int opcode,
                                            String owner,
                                            String name,
                                            String descriptor,
                                            boolean isInterface) {
                                        if (owner.equals(Type.getInternalName(Boundary.class))) {
                                            types.add(descriptor.substring(1, 2));
                                        }
                                    }
                                };
                            }
                        },
                        0);
        return types;
    }

    private static int size(byte[] classfile) {
        int[] size = new int[1];
        new ClassReader(classfile)
                .accept(
                        new ClassVisitor(Opcodes.ASM9) {
                            @Override
                            public MethodVisitor visitMethod(
                                    int access,
                                    String name,
                                    String descriptor,
                                    String signature,
                                    String[] exceptions) {
                                return new CodeSizeEvaluator(null) {
                                    @Override
                                    public void visitEnd() {
                                        size[0] = getMaxSize();
                                    }
                                };
                            }
                        },
                        0);
        return size[0];
    }

    /** A class with one static method of a long. */
    private static byte[] class_(Code code) {
        return class_(FILE, code);
    }

    private static byte[] class_(String file, Code code) {
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        writer.visit(Opcodes.V1_6, Opcodes.ACC_PUBLIC, "Generated", null, "java/lang/Object", null);
        writer.visitSource(file, null);
        MethodVisitor method = writer.visitMethod(Opcodes.ACC_STATIC, "next", "(J)V", null, null);
        method.visitCode();
        code.write(method);
        method.visitInsn(Opcodes.RETURN);
        method.visitMaxs(0, 0);
        method.visitEnd();
        writer.visitEnd();
        return writer.toByteArray();
    }

    private static void line(MethodVisitor method, int line) {
        Label here = new Label();
        method.visitLabel(here);
        method.visitLineNumber(line, here);
    }

    private static void product(MethodVisitor method, int into) {
        method.visitVarInsn(Opcodes.LLOAD, 0);
        method.visitInsn(Opcodes.DUP2);
        method.visitInsn(Opcodes.LMUL);
        method.visitVarInsn(Opcodes.LSTORE, into);
    }
}
