package io.unfuse.spark.common;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.junit.jupiter.api.Test;

import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

class JsonTest {
    private static final ObjectMapper READER = new ObjectMapper();

    @Test
    void writesEveryKindOfField() {
        String json =
                new Json()
                        .field("text", "a")
                        .field("none", (String) null)
                        .field("long", Long.MIN_VALUE)
                        .field("noNumber", (Number) null)
                        .field("yes", true)
                        .strings("names", Arrays.asList("x", null, "y"))
                        .array("empty")
                        .endArray()
                        .array("nodes")
                        .item()
                        .field("id", 1)
                        .array("inner")
                        .item()
                        .field("v", 2)
                        .end()
                        .endArray()
                        .end()
                        .item()
                        .field("id", 3)
                        .end()
                        .endArray()
                        .field("last", 4)
                        .toString();
        assertEquals(
                "{\"text\":\"a\",\"none\":null,\"long\":-9223372036854775808,\"noNumber\":null,\"yes\":true,"
                        + "\"names\":[\"x\",null,\"y\"],\"empty\":[],\"nodes\":[{\"id\":1,\"inner\":[{\"v\":2}]},{\"id\":3}],"
                        + "\"last\":4}",
                json);
    }

    @Test
    void emptyObject() {
        assertEquals("{}", new Json().toString());
    }

    @Test
    void everyCharacterComesBack() throws Exception {
        StringBuilder all = new StringBuilder();
        for (int c = 0; c < 0x10000; c++) {
            if (!Character.isSurrogate((char) c)) {
                all.append((char) c);
            }
        }
        all.appendCodePoint(0x10000).appendCodePoint(0x1F600).appendCodePoint(0x10FFFF);
        JsonNode read = READER.readTree(new Json().field("s", all.toString()).utf8());
        assertEquals(all.toString(), read.get("s").asText());
    }

    @Test
    void controlCharactersAreEscaped() {
        assertEquals(
                "{\"s\":\"\\u0000\\u0001\\t\\n\\r\\u001f\\\"\\\\/\"}",
                new Json().field("s", "\0\1\t\n\r\u001f\"\\/").toString());
    }

    @Test
    void loneSurrogatesBecomeReplacementCharacters() throws Exception {
        List<String> broken =
                Arrays.asList("\ud83d", "a\ud83d", "\ude00b", "\ud83d\ud83d\ude00", "\ude00\ud83d");
        List<String> mended =
                Arrays.asList("\ufffd", "a\ufffd", "\ufffdb", "\ufffd\ud83d\ude00", "\ufffd\ufffd");
        for (int i = 0; i < broken.size(); i++) {
            assertEquals(
                    mended.get(i),
                    READER.readTree(new Json().field("s", broken.get(i)).utf8()).get("s").asText());
        }
    }

    @Test
    void anyStringGivesStrictUtf8AndJson() throws Exception {
        Random random = new Random(7);
        for (int round = 0; round < 2000; round++) {
            char[] chars = new char[random.nextInt(20)];
            for (int i = 0; i < chars.length; i++) {
                chars[i] =
                        (char)
                                (random.nextBoolean()
                                        ? 0xd800 + random.nextInt(0x800)
                                        : random.nextInt(0x10000));
            }
            byte[] utf8 = new Json().field(new String(chars), new String(chars)).utf8();
            strictly(utf8);
            assertEquals(1, READER.readTree(utf8).size());
        }
    }

    private static void strictly(byte[] utf8) throws CharacterCodingException {
        assertTrue(
                StandardCharsets.UTF_8.newDecoder().decode(java.nio.ByteBuffer.wrap(utf8)).length()
                        > 0);
    }
}
