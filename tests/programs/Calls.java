/** Calls with so many receivers that they go through vtable and itable stubs. */
public class Calls {
    interface Step {
        long step(long x);
    }

    interface Other {
        long other(long x);
    }

    abstract static class Base {
        abstract long next(long x);
    }

    static class A extends Base implements Other, Step {
        public long next(long x) { return x * 3; }
        public long other(long x) { return x; }
        public long step(long x) { return x * 5; }
    }

    static class B extends Base implements Other, Step {
        public long next(long x) { return x * 7; }
        public long other(long x) { return x; }
        public long step(long x) { return x * 9; }
    }

    static class C extends Base implements Other, Step {
        public long next(long x) { return x * 11; }
        public long other(long x) { return x; }
        public long step(long x) { return x * 13; }
    }

    static class D extends Base implements Other, Step {
        public long next(long x) { return x * 15; }
        public long other(long x) { return x; }
        public long step(long x) { return x * 17; }
    }

    static final Base[] BASES = {new A(), new B(), new C(), new D()};
    static final Step[] STEPS = {new A(), new B(), new C(), new D()};

    static long byClass() {
        long x = 1;
        for (int i = 0; i < 600_000; i++) {
            x = BASES[i & 3].next(x); // HOT class
        }
        return x;
    }

    static long byInterface() {
        long x = 1;
        for (int i = 0; i < 200_000; i++) {
            x = STEPS[i & 3].step(x); // HOT interface
        }
        return x;
    }

    public static void main(String[] args) throws Exception {
        Truth.turns(Long.parseLong(args[0]), "Calls.byClass", (Truth.Part) Calls::byClass, "Calls.byInterface", (Truth.Part) Calls::byInterface);
        Truth.print();
    }
}
