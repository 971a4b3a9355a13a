public java.lang.Object generate(Object[] references) {
return new SpecificUnsafeProjection(references);
}

class SpecificUnsafeProjection extends org.apache.spark.sql.catalyst.expressions.UnsafeProjection {

private Object[] references;
private org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter[] mutableStateArray_0 = new org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter[1];

public SpecificUnsafeProjection(Object[] references) {
this.references = references;
mutableStateArray_0[0] = new org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter(6, 96);

}

public void initialize(int partitionIndex) {

}

public java.lang.Object apply(java.lang.Object i) {
return apply((InternalRow) i);
}

public UnsafeRow apply(InternalRow i) {
mutableStateArray_0[0].reset();


mutableStateArray_0[0].zeroOutNullBytes();

boolean isNull_0 = i.isNullAt(0);
Decimal value_0 = isNull_0 ?
null : (i.getDecimal(0, 25, 2));
mutableStateArray_0[0].writeNullable(0, value_0, isNull_0, 25, 2);

boolean isNull_1 = i.isNullAt(1);
long value_1 = isNull_1 ?
-1L : (i.getLong(1));
mutableStateArray_0[0].writeNullable(1, value_1, isNull_1);

boolean isNull_2 = i.isNullAt(2);
Decimal value_2 = isNull_2 ?
null : (i.getDecimal(2, 25, 2));
mutableStateArray_0[0].writeNullable(2, value_2, isNull_2, 25, 2);

boolean isNull_3 = i.isNullAt(3);
boolean value_3 = isNull_3 ?
false : (i.getBoolean(3));
mutableStateArray_0[0].writeNullable(3, value_3, isNull_3);

boolean isNull_4 = i.isNullAt(4);
Decimal value_4 = isNull_4 ?
null : (i.getDecimal(4, 25, 2));
mutableStateArray_0[0].writeNullable(4, value_4, isNull_4, 25, 2);

boolean isNull_5 = i.isNullAt(5);
long value_5 = isNull_5 ?
-1L : (i.getLong(5));
mutableStateArray_0[0].writeNullable(5, value_5, isNull_5);
return (mutableStateArray_0[0].getRow());
}


}