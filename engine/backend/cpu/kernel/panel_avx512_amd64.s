#include "go_asm.h"
#include "textflag.h"

// Panel products for AVX-512: package doc and panel.go say what they compute.
//
// Registers, in all of them:
//   R8  w, first position      R9  bytes from one position of w to the next
//   SI  x, first row           R10 bytes from one row of x to the next
//   CX  positions              R12 rows left
//   DI  y, first row           R11 bytes from one row of y to the next
//   R15 w, running             BX  x, three rows below SI
//   DX  positions left         AX  y, running
//   K1  all lanes if the sums start from y, K2 all lanes if they are added to y
//
// A block of up to six rows keeps its sums in Z0 to Z23. Z24 to Z27 hold the weights of one position, Z28 a value of x.

#define ARGUMENTS \
	MOVQ  p+0(FP), AX; \
	MOVQ  product_w(AX), R8; \
	MOVQ  product_wStep(AX), R9; \
	MOVQ  product_x(AX), SI; \
	MOVQ  product_xStep(AX), R10; \
	MOVQ  product_k(AX), CX; \
	MOVQ  product_y(AX), DI; \
	MOVQ  product_yStep(AX), R11; \
	MOVQ  product_rows(AX), R12; \
	MOVQ  product_from(AX), DX; \
	NEGQ  DX; \
	KMOVW DX, K1; \
	MOVQ  product_add(AX), DX; \
	NEGQ  DX; \
	KMOVW DX, K2

// UPPER makes the mask of the upper half of a word.
#define UPPER \
	MOVL         $0xffff0000, AX; \
	VPBROADCASTD AX, Z31

// BLOCK starts the running pointers of the next block of rows.
#define BLOCK \
	MOVQ R8, R15; \
	MOVQ CX, DX; \
	LEAQ (SI)(R10*2), BX; \
	ADDQ R10, BX

// STEP goes to the next position.
#define STEP(loop) \
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
	ADDQ   AX, DI

#define BEGIN4(A, B, C, D) \
	VMOVUPS.Z (AX), K1, A; \
	VMOVUPS.Z 64(AX), K1, B; \
	VMOVUPS.Z 128(AX), K1, C; \
	VMOVUPS.Z 192(AX), K1, D; \
	ADDQ      R11, AX

#define END4(A, B, C, D) \
	VADDPS  (AX), A, K2, A; \
	VADDPS  64(AX), B, K2, B; \
	VADDPS  128(AX), C, K2, C; \
	VADDPS  192(AX), D, K2, D; \
	VMOVUPS A, (AX); \
	VMOVUPS B, 64(AX); \
	VMOVUPS C, 128(AX); \
	VMOVUPS D, 192(AX); \
	ADDQ    R11, AX

#define ROW4(x, A, B, C, D) \
	VBROADCASTSS x, Z28; \
	VFMADD231PS  Z24, Z28, A; \
	VFMADD231PS  Z25, Z28, B; \
	VFMADD231PS  Z26, Z28, C; \
	VFMADD231PS  Z27, Z28, D

#define BEGIN2(A, B) \
	VMOVUPS.Z (AX), K1, A; \
	VMOVUPS.Z 64(AX), K1, B; \
	ADDQ      R11, AX

#define END2(A, B) \
	VADDPS  (AX), A, K2, A; \
	VADDPS  64(AX), B, K2, B; \
	VMOVUPS A, (AX); \
	VMOVUPS B, 64(AX); \
	ADDQ    R11, AX

#define ROW2(x, A, B) \
	VBROADCASTSS x, Z28; \
	VFMADD231PS  Z24, Z28, A; \
	VFMADD231PS  Z25, Z28, B

#define BEGIN1(A) \
	VMOVUPS.Z (AX), K1, A; \
	ADDQ      R11, AX

#define END1(A) \
	VADDPS  (AX), A, K2, A; \
	VMOVUPS A, (AX); \
	ADDQ    R11, AX

#define ROW1(x, A) \
	VFMADD231PS.BCST x, Z24, A

// Weights of one position into Z24 and up. bfloat16 lines hold output j in the lower and output 16+j in the upper half
// of a word; Z31 masks the upper halves.
#define F32X4 \
	VMOVUPS (R15), Z24; \
	VMOVUPS 64(R15), Z25; \
	VMOVUPS 128(R15), Z26; \
	VMOVUPS 192(R15), Z27; \
	ADDQ    R9, R15

#define F32X2 \
	VMOVUPS (R15), Z24; \
	VMOVUPS 64(R15), Z25; \
	ADDQ    R9, R15

#define F32X1 \
	VMOVUPS (R15), Z24; \
	ADDQ    R9, R15

#define BF16X4 \
	VMOVDQU32 (R15), Z25; \
	VMOVDQU32 64(R15), Z27; \
	VPSLLD    $16, Z25, Z24; \
	VPSLLD    $16, Z27, Z26; \
	VPANDD    Z31, Z25, Z25; \
	VPANDD    Z31, Z27, Z27; \
	ADDQ      R9, R15

#define BF16X2 \
	VMOVDQU32 (R15), Z25; \
	VPSLLD    $16, Z25, Z24; \
	VPANDD    Z31, Z25, Z25; \
	ADDQ      R9, R15

#define NOTHING

// AHEAD asks for the lines of positions to come, 4 KiB ahead: about what memory delivers within its latency.
#define AHEAD4 \
	PREFETCHT0 4096(R15); \
	PREFETCHT0 4160(R15); \
	PREFETCHT0 4224(R15); \
	PREFETCHT0 4288(R15)

#define AHEAD2 \
	PREFETCHT0 4096(R15); \
	PREFETCHT0 4160(R15)

#define AHEAD1 \
	PREFETCHT0 4096(R15)

// BY4 is the body of a product of 64 outputs: all blocks of six rows, then one of what is left.
#define BY4(WEIGHTS, AHEAD) \
again: \
	BLOCK; \
	MOVQ DI, AX; \
	CMPQ R12, $6; \
	JGE  six; \
	CMPQ R12, $4; \
	JEQ  four; \
	JGT  five; \
	CMPQ R12, $2; \
	JEQ  two; \
	JGT  three; \
	CMPQ R12, $1; \
	JEQ  one; \
	VZEROUPPER; \
	RET; \
six: \
	BEGIN4(Z0, Z1, Z2, Z3); BEGIN4(Z4, Z5, Z6, Z7); BEGIN4(Z8, Z9, Z10, Z11); \
	BEGIN4(Z12, Z13, Z14, Z15); BEGIN4(Z16, Z17, Z18, Z19); BEGIN4(Z20, Z21, Z22, Z23); \
loop6: \
	WEIGHTS; \
	AHEAD; \
	ROW4((SI), Z0, Z1, Z2, Z3); ROW4((SI)(R10*1), Z4, Z5, Z6, Z7); ROW4((SI)(R10*2), Z8, Z9, Z10, Z11); \
	ROW4((BX), Z12, Z13, Z14, Z15); ROW4((BX)(R10*1), Z16, Z17, Z18, Z19); ROW4((BX)(R10*2), Z20, Z21, Z22, Z23); \
	STEP(loop6); \
	MOVQ DI, AX; \
	END4(Z0, Z1, Z2, Z3); END4(Z4, Z5, Z6, Z7); END4(Z8, Z9, Z10, Z11); \
	END4(Z12, Z13, Z14, Z15); END4(Z16, Z17, Z18, Z19); END4(Z20, Z21, Z22, Z23); \
	NEXT(6); \
	SUBQ $6, R12; \
	JMP  again; \
five: \
	BEGIN4(Z0, Z1, Z2, Z3); BEGIN4(Z4, Z5, Z6, Z7); BEGIN4(Z8, Z9, Z10, Z11); \
	BEGIN4(Z12, Z13, Z14, Z15); BEGIN4(Z16, Z17, Z18, Z19); \
loop5: \
	WEIGHTS; \
	AHEAD; \
	ROW4((SI), Z0, Z1, Z2, Z3); ROW4((SI)(R10*1), Z4, Z5, Z6, Z7); ROW4((SI)(R10*2), Z8, Z9, Z10, Z11); \
	ROW4((BX), Z12, Z13, Z14, Z15); ROW4((BX)(R10*1), Z16, Z17, Z18, Z19); \
	STEP(loop5); \
	MOVQ DI, AX; \
	END4(Z0, Z1, Z2, Z3); END4(Z4, Z5, Z6, Z7); END4(Z8, Z9, Z10, Z11); \
	END4(Z12, Z13, Z14, Z15); END4(Z16, Z17, Z18, Z19); \
	VZEROUPPER; \
	RET; \
four: \
	BEGIN4(Z0, Z1, Z2, Z3); BEGIN4(Z4, Z5, Z6, Z7); BEGIN4(Z8, Z9, Z10, Z11); BEGIN4(Z12, Z13, Z14, Z15); \
loop4: \
	WEIGHTS; \
	AHEAD; \
	ROW4((SI), Z0, Z1, Z2, Z3); ROW4((SI)(R10*1), Z4, Z5, Z6, Z7); ROW4((SI)(R10*2), Z8, Z9, Z10, Z11); \
	ROW4((BX), Z12, Z13, Z14, Z15); \
	STEP(loop4); \
	MOVQ DI, AX; \
	END4(Z0, Z1, Z2, Z3); END4(Z4, Z5, Z6, Z7); END4(Z8, Z9, Z10, Z11); END4(Z12, Z13, Z14, Z15); \
	VZEROUPPER; \
	RET; \
three: \
	BEGIN4(Z0, Z1, Z2, Z3); BEGIN4(Z4, Z5, Z6, Z7); BEGIN4(Z8, Z9, Z10, Z11); \
loop3: \
	WEIGHTS; \
	AHEAD; \
	ROW4((SI), Z0, Z1, Z2, Z3); ROW4((SI)(R10*1), Z4, Z5, Z6, Z7); ROW4((SI)(R10*2), Z8, Z9, Z10, Z11); \
	STEP(loop3); \
	MOVQ DI, AX; \
	END4(Z0, Z1, Z2, Z3); END4(Z4, Z5, Z6, Z7); END4(Z8, Z9, Z10, Z11); \
	VZEROUPPER; \
	RET; \
two: \
	BEGIN4(Z0, Z1, Z2, Z3); BEGIN4(Z4, Z5, Z6, Z7); \
loop2: \
	WEIGHTS; \
	AHEAD; \
	ROW4((SI), Z0, Z1, Z2, Z3); ROW4((SI)(R10*1), Z4, Z5, Z6, Z7); \
	STEP(loop2); \
	MOVQ DI, AX; \
	END4(Z0, Z1, Z2, Z3); END4(Z4, Z5, Z6, Z7); \
	VZEROUPPER; \
	RET; \
one: \
	BEGIN4(Z0, Z1, Z2, Z3); \
loop1: \
	WEIGHTS; \
	AHEAD; \
	ROW4((SI), Z0, Z1, Z2, Z3); \
	STEP(loop1); \
	MOVQ DI, AX; \
	END4(Z0, Z1, Z2, Z3); \
	VZEROUPPER; \
	RET

// BY2 is the body of a product of 32 outputs: blocks of six, three, two and one rows.
#define BY2(WEIGHTS, AHEAD) \
again: \
	BLOCK; \
	MOVQ DI, AX; \
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
	BEGIN2(Z0, Z1); BEGIN2(Z2, Z3); BEGIN2(Z4, Z5); BEGIN2(Z6, Z7); BEGIN2(Z8, Z9); BEGIN2(Z10, Z11); \
loop6: \
	WEIGHTS; \
	ROW2((SI), Z0, Z1); ROW2((SI)(R10*1), Z2, Z3); ROW2((SI)(R10*2), Z4, Z5); \
	ROW2((BX), Z6, Z7); ROW2((BX)(R10*1), Z8, Z9); ROW2((BX)(R10*2), Z10, Z11); \
	STEP(loop6); \
	MOVQ DI, AX; \
	END2(Z0, Z1); END2(Z2, Z3); END2(Z4, Z5); END2(Z6, Z7); END2(Z8, Z9); END2(Z10, Z11); \
	NEXT(6); \
	SUBQ $6, R12; \
	JMP  again; \
three: \
	BEGIN2(Z0, Z1); BEGIN2(Z2, Z3); BEGIN2(Z4, Z5); \
loop3: \
	WEIGHTS; \
	ROW2((SI), Z0, Z1); ROW2((SI)(R10*1), Z2, Z3); ROW2((SI)(R10*2), Z4, Z5); \
	STEP(loop3); \
	MOVQ DI, AX; \
	END2(Z0, Z1); END2(Z2, Z3); END2(Z4, Z5); \
	NEXT(3); \
	SUBQ $3, R12; \
	JMP  again; \
two: \
	BEGIN2(Z0, Z1); BEGIN2(Z2, Z3); \
loop2: \
	WEIGHTS; \
	AHEAD; \
	ROW2((SI), Z0, Z1); ROW2((SI)(R10*1), Z2, Z3); \
	STEP(loop2); \
	MOVQ DI, AX; \
	END2(Z0, Z1); END2(Z2, Z3); \
	VZEROUPPER; \
	RET; \
one: \
	BEGIN2(Z0, Z1); \
loop1: \
	WEIGHTS; \
	AHEAD; \
	ROW2((SI), Z0, Z1); \
	STEP(loop1); \
	MOVQ DI, AX; \
	END2(Z0, Z1); \
	VZEROUPPER; \
	RET

// func panelF32x64AVX512(p *product)
TEXT ·panelF32x64AVX512(SB), NOSPLIT, $0-8
	ARGUMENTS
	BY4(F32X4, AHEAD4)

// func panelF32x32AVX512(p *product)
TEXT ·panelF32x32AVX512(SB), NOSPLIT, $0-8
	ARGUMENTS
	BY2(F32X2, AHEAD2)

// func panelF32x16AVX512(p *product)
TEXT ·panelF32x16AVX512(SB), NOSPLIT, $0-8
	ARGUMENTS

again:
	BLOCK
	MOVQ DI, AX
	CMPQ R12, $6
	JGE  six
	CMPQ R12, $3
	JGE  three
	CMPQ R12, $1
	JGT  two
	JEQ  one
	VZEROUPPER
	RET

six:
	BEGIN1(Z0); BEGIN1(Z1); BEGIN1(Z2); BEGIN1(Z3); BEGIN1(Z4); BEGIN1(Z5)

loop6:
	F32X1
	ROW1((SI), Z0); ROW1((SI)(R10*1), Z1); ROW1((SI)(R10*2), Z2)
	ROW1((BX), Z3); ROW1((BX)(R10*1), Z4); ROW1((BX)(R10*2), Z5)
	STEP(loop6)
	MOVQ DI, AX
	END1(Z0); END1(Z1); END1(Z2); END1(Z3); END1(Z4); END1(Z5)
	NEXT(6)
	SUBQ $6, R12
	JMP  again

three:
	BEGIN1(Z0); BEGIN1(Z1); BEGIN1(Z2)

loop3:
	F32X1
	ROW1((SI), Z0); ROW1((SI)(R10*1), Z1); ROW1((SI)(R10*2), Z2)
	STEP(loop3)
	MOVQ DI, AX
	END1(Z0); END1(Z1); END1(Z2)
	NEXT(3)
	SUBQ $3, R12
	JMP  again

two:
	BEGIN1(Z0); BEGIN1(Z1)

loop2:
	F32X1
	ROW1((SI), Z0); ROW1((SI)(R10*1), Z1)
	STEP(loop2)
	MOVQ DI, AX
	END1(Z0); END1(Z1)
	VZEROUPPER
	RET

one:
	BEGIN1(Z0)

loop1:
	F32X1
	ROW1((SI), Z0)
	STEP(loop1)
	MOVQ DI, AX
	END1(Z0)
	VZEROUPPER
	RET

// func panelBF16x64AVX512(p *product)
TEXT ·panelBF16x64AVX512(SB), NOSPLIT, $0-8
	ARGUMENTS
	UPPER
	BY4(BF16X4, AHEAD2)

// func panelBF16x32AVX512(p *product)
TEXT ·panelBF16x32AVX512(SB), NOSPLIT, $0-8
	ARGUMENTS
	UPPER
	BY2(BF16X2, AHEAD1)
