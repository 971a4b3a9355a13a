import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.DoubleUnaryOperator;

/** Classes without a fixed name: hidden classes, lambdas, and the classes that run method handles. */
public class Hidden {
    static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    static byte[] template;
    static DoubleUnaryOperator lambda = x -> Math.sqrt(x + 1) / 1.0001;
    /** Not final, so that the compilers cannot inline its target. */
    static MethodHandle handle;

    /** Runs only as hidden classes that are made from it. */
    static class Template {
        static long spin() {
            double x = 1;
            for (int i = 0; i < 100_000; i++) {
                x = Math.sqrt(x + i) / 1.0001;
            }
            return (long) x;
        }
    }

    static double root(double x) {
        return Math.sqrt(x + 2) / 1.0001;
    }

    static double half(double x) {
        return x / 2;
    }

    static long hidden() throws Exception {
        Class<?> fresh = LOOKUP.defineHiddenClass(template, true).lookupClass();
        MethodHandle spin = MethodHandles.privateLookupIn(fresh, LOOKUP)
                .findStatic(fresh, "spin", MethodType.methodType(long.class));
        long x = 0;
        for (int i = 0; i < 60; i++) {
            try {
                x += (long) spin.invokeExact();
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        }
        return x;
    }

    static long lambdas() {
        double x = 1;
        for (int i = 0; i < 2_000_000; i++) {
            x = lambda.applyAsDouble(x + i);
        }
        return (long) x;
    }

    static long handles() throws Exception {
        double x = 1;
        try {
            for (int i = 0; i < 1_000_000; i++) {
                x = (double) handle.invokeExact(x + i);
            }
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
        return (long) x;
    }

    public static void main(String[] args) throws Exception {
        try (var in = Hidden.class.getResourceAsStream("Hidden$Template.class")) {
            template = in.readAllBytes();
        }
        MethodType type = MethodType.methodType(double.class, double.class);
        handle = MethodHandles.filterReturnValue(LOOKUP.findStatic(Hidden.class, "root", type), LOOKUP.findStatic(Hidden.class, "half", type));
        Truth.turns(Long.parseLong(args[0]), "Hidden.hidden", (Truth.Part) Hidden::hidden, "Hidden.lambdas", (Truth.Part) Hidden::lambdas,
                "Hidden.handles", (Truth.Part) Hidden::handles);
        Truth.print();
    }
}
