import org.apache.spark.sql.api.java.UDF2;

/** The identity, after so many rounds of arithmetic: work that touches no memory. */
public class Spin implements UDF2<Long, Integer, Long> {
    /** No chain of rounds is likely to end in it, but the compiler cannot know. */
    private static volatile long never = 0x5eed_5eed_5eed_5eedL;

    @Override
    public Long call(Long value, Integer rounds) {
        long x = value;
        for (int i = 0; i < rounds; i++) {
            x = (x ^ x >>> 31) * 0x9e3779b97f4a7c15L;
        }
        if (x == never) {
            throw new IllegalStateException();
        }
        return value;
    }
}
