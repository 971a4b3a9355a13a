package io.unfuse.spark.common;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * Converts Scala collections to Java lists and back. {@code Seq} in a method signature has
 * different types in Scala 2.12 and 2.13, so one jar for both must not name it: every method with
 * such a parameter or result is called by reflection, and only here.
 */
public final class ScalaSeq {
    private ScalaSeq() {}

    private static final Method ITERATOR = method("scala.collection.Iterable", "iterator");

    /** The elements of a Scala collection (null counts as empty). */
    public static List<Object> toList(Object collection) throws ReflectiveOperationException {
        List<Object> list = new ArrayList<>();
        if (collection == null) {
            return list;
        }
        scala.collection.Iterator<?> elements =
                (scala.collection.Iterator<?>) ITERATOR.invoke(collection);
        while (elements.hasNext()) {
            list.add(elements.next());
        }
        return list;
    }

    /** The elements of the collection that {@code owner.accessor()} returns. */
    public static List<Object> get(Object owner, Method accessor)
            throws ReflectiveOperationException {
        return toList(accessor.invoke(owner));
    }

    /** An immutable Scala list, which is a {@code Seq} under both definitions. */
    public static Object fromList(List<?> elements) throws ReflectiveOperationException {
        Class<?> nilClass = Class.forName("scala.collection.immutable.Nil$");
        Object list = nilClass.getField("MODULE$").get(null);
        java.lang.reflect.Constructor<?> cons =
                Class.forName("scala.collection.immutable.$colon$colon")
                        .getConstructor(
                                Object.class, Class.forName("scala.collection.immutable.List"));
        for (int i = elements.size() - 1; i >= 0; i--) {
            list = cons.newInstance(elements.get(i), list);
        }
        return list;
    }

    /**
     * A public method without parameters, found by name because its result type differs between
     * Scala versions.
     */
    public static Method method(String className, String name) {
        try {
            return Class.forName(className, false, ScalaSeq.class.getClassLoader()).getMethod(name);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(
                    "this Spark has no " + className + "." + name + "()", e);
        }
    }
}
