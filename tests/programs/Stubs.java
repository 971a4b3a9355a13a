import java.security.MessageDigest;
import java.util.Arrays;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

/** Work that HotSpot does in assembly of its own. */
public class Stubs {
    static final byte[] BYTES = new byte[1 << 20];
    static final byte[] TARGET = new byte[1 << 20];
    static final int[] NUMBERS = new int[40_000];
    static final String TEXT = "ab".repeat(200_000) + "abc";
    static Cipher cipher;

    static long copy() {
        for (int i = 0; i < 100; i++) {
            System.arraycopy(BYTES, 0, TARGET, i, BYTES.length - i);
        }
        return TARGET[77];
    }

    static long checksum() {
        CRC32 crc = new CRC32();
        for (int i = 0; i < 60; i++) {
            crc.update(BYTES);
        }
        return crc.getValue();
    }

    static long digest() throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(BYTES)[0];
    }

    static long encrypt() throws Exception {
        return cipher.update(BYTES, 0, BYTES.length, TARGET, 0) + TARGET[5];
    }

    static long sort() {
        for (int i = 0, x = 1; i < NUMBERS.length; i++) {
            NUMBERS[i] = x = x * 1103515245 + 12345;
        }
        Arrays.sort(NUMBERS);
        return NUMBERS[99];
    }

    static long search() {
        long x = 0;
        for (int i = 0; i < 4; i++) {
            x += TEXT.indexOf("abc", i);
        }
        return x;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < BYTES.length; i++) {
            BYTES[i] = (byte) (i * 31);
        }
        cipher = Cipher.getInstance("AES/CBC/NoPadding");
        cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"));
        Truth.turns(Long.parseLong(args[0]), "Stubs.copy", (Truth.Part) Stubs::copy, "Stubs.checksum", (Truth.Part) Stubs::checksum,
                "Stubs.digest", (Truth.Part) Stubs::digest, "Stubs.encrypt", (Truth.Part) Stubs::encrypt,
                "Stubs.sort", (Truth.Part) Stubs::sort, "Stubs.search", (Truth.Part) Stubs::search);
        Truth.print();
    }
}
