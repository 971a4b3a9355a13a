import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Work in a native library that keeps no frame pointers. */
public class Natives {
    static final byte[] BYTES = new byte[1 << 16];
    static final byte[] PACKED = new byte[1 << 17];
    static int packed;

    static long deflate() {
        Deflater deflater = new Deflater();
        deflater.setInput(BYTES);
        deflater.finish();
        packed = deflater.deflate(PACKED);
        deflater.end();
        return packed;
    }

    static long inflate() throws Exception {
        long x = 0;
        for (int i = 0; i < 4; i++) {
            Inflater inflater = new Inflater();
            inflater.setInput(PACKED, 0, packed);
            x += inflater.inflate(BYTES);
            inflater.end();
        }
        return x;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0, x = 1; i < BYTES.length; i++) {
            x = x * 1103515245 + 12345;
            BYTES[i] = (byte) (x >>> 27);
        }
        Truth.turns(Long.parseLong(args[0]), "Natives.deflate", (Truth.Part) Natives::deflate, "Natives.inflate", (Truth.Part) Natives::inflate);
        Truth.print();
    }
}
