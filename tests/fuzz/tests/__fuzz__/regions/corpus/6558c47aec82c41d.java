public java.lang.Object generate(Object[] references) {
return new SpecificUnsafeProjection(references);
}

class SpecificUnsafeProjection extends org.apache.spark.sql.catalyst.expressions.UnsafeProjection {

private Object[] references;
private org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter[] mutableStateArray_0 = new org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter[1];

public SpecificUnsafeProjection(Object[] references) {
this.references = references;
mutableStateArray_0[0] = new org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter(1, 0);

}

public void initialize(int partitionIndex) {

}

public java.lang.Object apply(java.lang.Object i) {
return apply((InternalRow) i);
}

public UnsafeRow apply(InternalRow i) {
mutableStateArray_0[0].reset();




long value_0 = i.getLong(0);
mutableStateArray_0[0].write(0, value_0);
return (mutableStateArray_0[0].getRow());
}


}