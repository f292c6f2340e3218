#include "go_asm.h"
#include "textflag.h"

// Panel products for AVX2 and FMA: package doc and panel.go say what they compute.
//
// Registers, in all of them:
//   R8  w, first position      R9  bytes from one position of w to the next
//   SI  x, first row           R10 bytes from one row of x to the next
//   CX  positions              R12 rows left
//   DI  y, first row           R11 bytes from one row of y to the next
//   R15 w, running             BX  x, three rows below SI
//   DX  positions left         AX  y, running
//   R13 not 0 if the sums start from y, R14 not 0 if they are added to y
//
// A block of up to six rows keeps its sums in Y0 to Y11. Y12 and Y13 hold weights of one position, Y14 a value of x.

#define ARGUMENTS \
	MOVQ p+0(FP), AX; \
	MOVQ product_w(AX), R8; \
	MOVQ product_wStep(AX), R9; \
	MOVQ product_x(AX), SI; \
	MOVQ product_xStep(AX), R10; \
	MOVQ product_k(AX), CX; \
	MOVQ product_y(AX), DI; \
	MOVQ product_yStep(AX), R11; \
	MOVQ product_rows(AX), R12; \
	MOVQ product_from(AX), R13; \
	MOVQ product_add(AX), R14

// UPPER makes the mask of the upper half of a word.
#define UPPER \
	VPCMPEQD Y15, Y15, Y15; \
	VPSLLD   $16, Y15, Y15

// BLOCK starts the running pointers of the next block of rows.
#define BLOCK \
	MOVQ R8, R15; \
	MOVQ CX, DX; \
	LEAQ (SI)(R10*2), BX; \
	ADDQ R10, BX; \
	MOVQ DI, AX

// STEP goes to the next position.
#define STEP(loop) \
	ADDQ R9, R15; \
	ADDQ $4, SI; \
	ADDQ $4, BX; \
	DECQ DX; \
	JNZ  loop

// NEXT takes x and y past a block of n rows.
#define NEXT(n) \
	MOVQ   CX, DX; \
	SHLQ   $2, DX; \
	SUBQ   DX, SI; \
	IMUL3Q $n, R10, AX; \
	ADDQ   AX, SI; \
	IMUL3Q $n, R11, AX; \
	ADDQ   AX, DI; \
	SUBQ   $n, R12

#define ZERO2(A, B) \
	VXORPS A, A, A; \
	VXORPS B, B, B

// The two vectors of a row of y lie side by side in a float32 product and 64 bytes apart in a bfloat16 product.
#define LOAD2(apart, A, B) \
	VMOVUPS (AX), A; \
	VMOVUPS apart(AX), B; \
	ADDQ    R11, AX

#define ADD2(apart, A, B) \
	VADDPS (AX), A, A; \
	VADDPS apart(AX), B, B; \
	ADDQ   R11, AX

#define STORE2(apart, A, B) \
	VMOVUPS A, (AX); \
	VMOVUPS B, apart(AX); \
	ADDQ    R11, AX

#define ROW2(x, A, B) \
	VBROADCASTSS x, Y14; \
	VFMADD231PS  Y12, Y14, A; \
	VFMADD231PS  Y13, Y14, B

#define F32X2 \
	VMOVUPS (R15), Y12; \
	VMOVUPS 32(R15), Y13

// A panel is read in slices of 16 outputs, each over all positions. The first of them asks for the lines of the others
// too: memory is then read in order.
#define F32X2FIRST \
	PREFETCHT0 4096(R15); \
	PREFETCHT0 4160(R15); \
	PREFETCHT0 4224(R15); \
	PREFETCHT0 4288(R15); \
	F32X2

// A bfloat16 line holds output j in the lower and output 16+j in the upper half of a word; Y15 masks the upper halves.
#define BF16X2 \
	VMOVDQU (R15), Y13; \
	VPSLLD  $16, Y13, Y12; \
	VPAND   Y15, Y13, Y13

#define BF16X2FIRST \
	PREFETCHT0 4096(R15); \
	PREFETCHT0 4160(R15); \
	BF16X2

// BY2 is the body of a product of 16 outputs: blocks of six, three, two and one rows.
#define BY2(WEIGHTS, apart) \
again: \
	BLOCK; \
	CMPQ R12, $6; \
	JGE  six; \
	CMPQ R12, $3; \
	JGE  three; \
	CMPQ R12, $1; \
	JGT  two; \
	JEQ  one; \
	VZEROUPPER; \
	RET; \
six: \
	ZERO2(Y0, Y1); ZERO2(Y2, Y3); ZERO2(Y4, Y5); ZERO2(Y6, Y7); ZERO2(Y8, Y9); ZERO2(Y10, Y11); \
	TESTQ R13, R13; \
	JZ    loop6; \
	LOAD2(apart, Y0, Y1); LOAD2(apart, Y2, Y3); LOAD2(apart, Y4, Y5); \
	LOAD2(apart, Y6, Y7); LOAD2(apart, Y8, Y9); LOAD2(apart, Y10, Y11); \
loop6: \
	WEIGHTS; \
	ROW2((SI), Y0, Y1); ROW2((SI)(R10*1), Y2, Y3); ROW2((SI)(R10*2), Y4, Y5); \
	ROW2((BX), Y6, Y7); ROW2((BX)(R10*1), Y8, Y9); ROW2((BX)(R10*2), Y10, Y11); \
	STEP(loop6); \
	TESTQ R14, R14; \
	JZ    store6; \
	MOVQ  DI, AX; \
	ADD2(apart, Y0, Y1); ADD2(apart, Y2, Y3); ADD2(apart, Y4, Y5); \
	ADD2(apart, Y6, Y7); ADD2(apart, Y8, Y9); ADD2(apart, Y10, Y11); \
store6: \
	MOVQ DI, AX; \
	STORE2(apart, Y0, Y1); STORE2(apart, Y2, Y3); STORE2(apart, Y4, Y5); \
	STORE2(apart, Y6, Y7); STORE2(apart, Y8, Y9); STORE2(apart, Y10, Y11); \
	NEXT(6); \
	JMP again; \
three: \
	ZERO2(Y0, Y1); ZERO2(Y2, Y3); ZERO2(Y4, Y5); \
	TESTQ R13, R13; \
	JZ    loop3; \
	LOAD2(apart, Y0, Y1); LOAD2(apart, Y2, Y3); LOAD2(apart, Y4, Y5); \
loop3: \
	WEIGHTS; \
	ROW2((SI), Y0, Y1); ROW2((SI)(R10*1), Y2, Y3); ROW2((SI)(R10*2), Y4, Y5); \
	STEP(loop3); \
	TESTQ R14, R14; \
	JZ    store3; \
	MOVQ  DI, AX; \
	ADD2(apart, Y0, Y1); ADD2(apart, Y2, Y3); ADD2(apart, Y4, Y5); \
store3: \
	MOVQ DI, AX; \
	STORE2(apart, Y0, Y1); STORE2(apart, Y2, Y3); STORE2(apart, Y4, Y5); \
	NEXT(3); \
	JMP again; \
two: \
	ZERO2(Y0, Y1); ZERO2(Y2, Y3); \
	TESTQ R13, R13; \
	JZ    loop2; \
	LOAD2(apart, Y0, Y1); LOAD2(apart, Y2, Y3); \
loop2: \
	WEIGHTS; \
	ROW2((SI), Y0, Y1); ROW2((SI)(R10*1), Y2, Y3); \
	STEP(loop2); \
	TESTQ R14, R14; \
	JZ    store2; \
	MOVQ  DI, AX; \
	ADD2(apart, Y0, Y1); ADD2(apart, Y2, Y3); \
store2: \
	MOVQ DI, AX; \
	STORE2(apart, Y0, Y1); STORE2(apart, Y2, Y3); \
	VZEROUPPER; \
	RET; \
one: \
	ZERO2(Y0, Y1); \
	TESTQ R13, R13; \
	JZ    loop1; \
	LOAD2(apart, Y0, Y1); \
loop1: \
	WEIGHTS; \
	ROW2((SI), Y0, Y1); \
	STEP(loop1); \
	TESTQ R14, R14; \
	JZ    store1; \
	MOVQ  DI, AX; \
	ADD2(apart, Y0, Y1); \
store1: \
	MOVQ DI, AX; \
	STORE2(apart, Y0, Y1); \
	VZEROUPPER; \
	RET

// func panelF32x16AVX2(p *product)
TEXT ·panelF32x16AVX2(SB), NOSPLIT, $0-8
	ARGUMENTS
	BY2(F32X2, 32)

// func firstF32x16AVX2(p *product)
TEXT ·firstF32x16AVX2(SB), NOSPLIT, $0-8
	ARGUMENTS
	BY2(F32X2FIRST, 32)

// panelBF16x16AVX2 computes outputs 0 to 7 and 16 to 23 of a line.
//
// func panelBF16x16AVX2(p *product)
TEXT ·panelBF16x16AVX2(SB), NOSPLIT, $0-8
	ARGUMENTS
	UPPER
	BY2(BF16X2, 64)

// func firstBF16x16AVX2(p *product)
TEXT ·firstBF16x16AVX2(SB), NOSPLIT, $0-8
	ARGUMENTS
	UPPER
	BY2(BF16X2FIRST, 64)

// rowF32x64AVX2 is a product of a single row with 64 outputs: it goes at the speed of memory.
//
// func rowF32x64AVX2(p *product)
TEXT ·rowF32x64AVX2(SB), NOSPLIT, $0-8
	ARGUMENTS
	ZERO2(Y0, Y1)
	ZERO2(Y2, Y3)
	ZERO2(Y4, Y5)
	ZERO2(Y6, Y7)

loop:
	VBROADCASTSS (SI), Y14
	PREFETCHT0   4096(R8)
	PREFETCHT0   4160(R8)
	PREFETCHT0   4224(R8)
	PREFETCHT0   4288(R8)
	VFMADD231PS  (R8), Y14, Y0
	VFMADD231PS  32(R8), Y14, Y1
	VFMADD231PS  64(R8), Y14, Y2
	VFMADD231PS  96(R8), Y14, Y3
	VFMADD231PS  128(R8), Y14, Y4
	VFMADD231PS  160(R8), Y14, Y5
	VFMADD231PS  192(R8), Y14, Y6
	VFMADD231PS  224(R8), Y14, Y7
	ADDQ         R9, R8
	ADDQ         $4, SI
	DECQ         CX
	JNZ          loop
	TESTQ        R14, R14
	JZ           store
	VADDPS       (DI), Y0, Y0
	VADDPS       32(DI), Y1, Y1
	VADDPS       64(DI), Y2, Y2
	VADDPS       96(DI), Y3, Y3
	VADDPS       128(DI), Y4, Y4
	VADDPS       160(DI), Y5, Y5
	VADDPS       192(DI), Y6, Y6
	VADDPS       224(DI), Y7, Y7

store:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	VZEROUPPER
	RET

// LINE multiplies the 32 outputs of the line at off by Y14.
#define LINE(off, A, B, C, D) \
	VMOVDQU     off(R8), Y11; \
	VMOVDQU     (off+32)(R8), Y13; \
	VPSLLD      $16, Y11, Y10; \
	VPSLLD      $16, Y13, Y12; \
	VPAND       Y15, Y11, Y11; \
	VPAND       Y15, Y13, Y13; \
	VFMADD231PS Y10, Y14, A; \
	VFMADD231PS Y12, Y14, B; \
	VFMADD231PS Y11, Y14, C; \
	VFMADD231PS Y13, Y14, D

// rowBF16x32AVX2 is a product of a single row with the 32 outputs of a line.
//
// func rowBF16x32AVX2(p *product)
TEXT ·rowBF16x32AVX2(SB), NOSPLIT, $0-8
	ARGUMENTS
	UPPER
	ZERO2(Y0, Y1)
	ZERO2(Y2, Y3)

loop:
	VBROADCASTSS (SI), Y14
	PREFETCHT0   4096(R8)
	LINE(0, Y0, Y1, Y2, Y3)
	ADDQ         R9, R8
	ADDQ         $4, SI
	DECQ         CX
	JNZ          loop
	TESTQ        R14, R14
	JZ           store
	VADDPS       (DI), Y0, Y0
	VADDPS       32(DI), Y1, Y1
	VADDPS       64(DI), Y2, Y2
	VADDPS       96(DI), Y3, Y3

store:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VZEROUPPER
	RET

// rowBF16x64AVX2 is a product of a single row with the 64 outputs of two lines.
//
// func rowBF16x64AVX2(p *product)
TEXT ·rowBF16x64AVX2(SB), NOSPLIT, $0-8
	ARGUMENTS
	UPPER
	ZERO2(Y0, Y1)
	ZERO2(Y2, Y3)
	ZERO2(Y4, Y5)
	ZERO2(Y6, Y7)

loop:
	VBROADCASTSS (SI), Y14
	PREFETCHT0   4096(R8)
	PREFETCHT0   4160(R8)
	LINE(0, Y0, Y1, Y2, Y3)
	LINE(64, Y4, Y5, Y6, Y7)
	ADDQ         R9, R8
	ADDQ         $4, SI
	DECQ         CX
	JNZ          loop
	TESTQ        R14, R14
	JZ           store
	VADDPS       (DI), Y0, Y0
	VADDPS       32(DI), Y1, Y1
	VADDPS       64(DI), Y2, Y2
	VADDPS       96(DI), Y3, Y3
	VADDPS       128(DI), Y4, Y4
	VADDPS       160(DI), Y5, Y5
	VADDPS       192(DI), Y6, Y6
	VADDPS       224(DI), Y7, Y7

store:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	VZEROUPPER
	RET
