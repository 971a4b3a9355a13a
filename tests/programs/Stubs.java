import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Work that HotSpot does in its own assembly routines. */
public class Stubs {
    static final byte[] BYTES = new byte[1 << 20];
    static final byte[] TARGET = new byte[1 << 20];
    static final int[] NUMBERS = new int[40_000];
    static final String TEXT = "ab".repeat(200_000) + "abc";
    static final BigInteger FACTOR = BigInteger.valueOf(3).pow(1500);
    static final BigInteger BASE = BigInteger.valueOf(7).pow(360);
    static final BigInteger MODULUS = BigInteger.valueOf(2).pow(1024).subtract(BigInteger.valueOf(105));
    static final byte[] ENCODED = Base64.getEncoder().encode(new byte[1 << 20]);
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

    /** HotSpot's routine for SHA-512 uses the frame pointer register for a table. */
    static long wideDigest() throws Exception {
        return MessageDigest.getInstance("SHA-512").digest(BYTES)[0];
    }

    static long oldDigest() throws Exception {
        return MessageDigest.getInstance("MD5").digest(BYTES)[0];
    }

    static long multiply() {
        long x = 0;
        for (int i = 0; i < 200; i++) {
            x += FACTOR.multiply(FACTOR).bitLength();
        }
        return x;
    }

    static long exponentiate() {
        return BASE.modPow(BASE, MODULUS).bitLength();
    }

    static long encode() {
        return Base64.getEncoder().encode(BYTES)[3] + Base64.getDecoder().decode(ENCODED)[5];
    }

    static long seal() throws Exception {
        Cipher gcm = Cipher.getInstance("AES/GCM/NoPadding");
        gcm.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"), new GCMParameterSpec(128, new byte[12]));
        return gcm.doFinal(BYTES, 0, BYTES.length / 8)[5];
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
                "Stubs.wideDigest", (Truth.Part) Stubs::wideDigest, "Stubs.oldDigest", (Truth.Part) Stubs::oldDigest,
                "Stubs.multiply", (Truth.Part) Stubs::multiply, "Stubs.exponentiate", (Truth.Part) Stubs::exponentiate,
                "Stubs.encode", (Truth.Part) Stubs::encode, "Stubs.seal", (Truth.Part) Stubs::seal,
                "Stubs.sort", (Truth.Part) Stubs::sort, "Stubs.search", (Truth.Part) Stubs::search);
        Truth.print();
    }
}
