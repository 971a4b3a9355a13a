package io.unfuse.spark.ui;

import org.apache.spark.ui.WebUIPage;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;

/**
 * The class of our pages, generated on first use: {@code WebUIPage.render} takes a {@code javax}
 * request and returns a {@code scala.collection.Seq} in Spark 3.5, a {@code jakarta} request and an
 * {@code immutable.Seq} in Spark 4, and one jar cannot be compiled against both.
 */
final class PageClass {
    private static final String NAME = "io/unfuse/spark/ui/SparkOperatorsPage";
    private static final String SUPER = Type.getInternalName(OperatorsPage.class);
    private static final String CONSTRUCTOR =
            "(Ljava/lang/String;" + Type.getDescriptor(OperatorsPage.Content.class) + ")V";

    private static Constructor<?> constructor;

    private PageClass() {}

    static synchronized WebUIPage newPage(String prefix, OperatorsPage.Content content)
            throws ReflectiveOperationException {
        if (constructor == null) {
            Class<?> made = MethodHandles.lookup().defineClass(bytes());
            constructor = made.getDeclaredConstructor(String.class, OperatorsPage.Content.class);
        }
        return (WebUIPage) constructor.newInstance(prefix, content);
    }

    private static byte[] bytes() throws NoSuchMethodException {
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        writer.visit(Opcodes.V17, Opcodes.ACC_FINAL | Opcodes.ACC_SUPER, NAME, null, SUPER, null);
        MethodVisitor init = writer.visitMethod(0, "<init>", CONSTRUCTOR, null, null);
        init.visitCode();
        init.visitVarInsn(Opcodes.ALOAD, 0);
        init.visitVarInsn(Opcodes.ALOAD, 1);
        init.visitVarInsn(Opcodes.ALOAD, 2);
        init.visitMethodInsn(Opcodes.INVOKESPECIAL, SUPER, "<init>", CONSTRUCTOR, false);
        init.visitInsn(Opcodes.RETURN);
        init.visitMaxs(0, 0);
        init.visitEnd();

        Method inSpark = renderMethod();
        MethodVisitor render =
                writer.visitMethod(
                        Opcodes.ACC_PUBLIC,
                        "render",
                        Type.getMethodDescriptor(inSpark),
                        null,
                        null);
        render.visitCode();
        render.visitVarInsn(Opcodes.ALOAD, 0);
        render.visitVarInsn(Opcodes.ALOAD, 1);
        render.visitMethodInsn(
                Opcodes.INVOKEVIRTUAL,
                SUPER,
                "nodes",
                "(Ljava/lang/Object;)Ljava/lang/Object;",
                false);
        render.visitTypeInsn(Opcodes.CHECKCAST, Type.getInternalName(inSpark.getReturnType()));
        render.visitInsn(Opcodes.ARETURN);
        render.visitMaxs(0, 0);
        render.visitEnd();
        writer.visitEnd();
        return writer.toByteArray();
    }

    private static Method renderMethod() throws NoSuchMethodException {
        for (Method method : WebUIPage.class.getMethods()) {
            if (method.getName().equals("render") && Modifier.isAbstract(method.getModifiers())) {
                return method;
            }
        }
        throw new NoSuchMethodException("WebUIPage.render");
    }
}
