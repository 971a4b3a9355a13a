/** Breaks assumptions of the compilers several times: HotSpot discards code, interprets it and compiles it again. */
public class Deopt {
    static class Shape {
        double area(double x) {
            return Math.sqrt(x) / 1.0001;
        }
    }

    static class A extends Shape {
        double area(double x) {
            return Math.sqrt(x + 1) / 1.0001;
        }
    }

    static class B extends Shape {
        double area(double x) {
            return Math.sqrt(x + 2) / 1.0001;
        }
    }

    static class C extends Shape {
        double area(double x) {
            return Math.sqrt(x + 3) / 1.0001;
        }
    }

    static Shape shape = new Shape();
    static int mode;

    /** Each round adds a receiver class: first one, then two, then many. */
    static long areas() {
        double x = 1;
        for (int i = 0; i < 200_000; i++) {
            x = shape.area(x + i); // HOT areas
        }
        return (long) x;
    }

    /** Each round takes a branch that no earlier round has taken. */
    static long branches() {
        double x = 1;
        for (int i = 0; i < 400_000; i++) {
            x = mode == 0 ? Math.sqrt(x + i) : mode == 1 ? Math.sqrt(x * i + 1) : mode == 2 ? Math.sqrt(x + 7) / 3 : Math.sqrt(i); // HOT branches
        }
        return (long) x;
    }

    public static void main(String[] args) throws Exception {
        for (mode = 0; mode < 4; mode++) {
            // The JVM loads the class only now.
            shape = mode == 0 ? shape : mode == 1 ? new A() : mode == 2 ? new B() : new C();
            Truth.turns(Long.parseLong(args[0]) / 4, "Deopt.areas", (Truth.Part) Deopt::areas, "Deopt.branches", (Truth.Part) Deopt::branches);
        }
        Truth.print();
    }
}
