#include "textflag.h"

// Vector kernels for AVX2 and FMA, used at that level and, but for those with an exponential, above it. Each goes through x sixteen values at a time:
// lanes 0 to 7 in one register, 8 to 15 in another. n is a multiple of 16 and at least 16.

#define CONSTANT(name, bits) \
	DATA  name<>+0(SB)/4, $bits; \
	DATA  name<>+4(SB)/4, $bits; \
	DATA  name<>+8(SB)/4, $bits; \
	DATA  name<>+12(SB)/4, $bits; \
	DATA  name<>+16(SB)/4, $bits; \
	DATA  name<>+20(SB)/4, $bits; \
	DATA  name<>+24(SB)/4, $bits; \
	DATA  name<>+28(SB)/4, $bits; \
	GLOBL name<>(SB), RODATA|NOPTR, $32

CONSTANT(least, 0xc2aea8f6)   // -87.33: below, exp is under the smallest normal number
CONSTANT(most, 0x42b00000)    // 88
CONSTANT(log2e, 0x3fb8aa3b)   // 1/ln 2
CONSTANT(ln2hi, 0x3f317200)   // ln 2, upper 15 bits: its product with an exponent is exact
CONSTANT(ln2lo, 0x35bfbe8e)   // ln 2 less those
CONSTANT(one, 0x3f800000)
CONSTANT(half, 0x3f000000)
CONSTANT(sixth, 0x3e2aaaab)
CONSTANT(over24, 0x3d2aaaab)
CONSTANT(over120, 0x3c088889)
CONSTANT(over720, 0x3ab60b61)
CONSTANT(over5040, 0x39500d01)

// EXP replaces X by its exponential: 2^N e^R with |R| <= ln(2)/2, and e^R by its Taylor series to R^7, whose rest is
// 5e-9. Below least the result is 0.
#define EXP(X, N, P, M) \
	VCMPPS       $13, least<>(SB), X, M; \
	VMAXPS       least<>(SB), X, X; \
	VMINPS       most<>(SB), X, X; \
	VMULPS       log2e<>(SB), X, N; \
	VROUNDPS     $8, N, N; \
	VFNMADD231PS ln2hi<>(SB), N, X; \
	VFNMADD231PS ln2lo<>(SB), N, X; \
	VMOVUPS      over5040<>(SB), P; \
	VFMADD213PS  over720<>(SB), X, P; \
	VFMADD213PS  over120<>(SB), X, P; \
	VFMADD213PS  over24<>(SB), X, P; \
	VFMADD213PS  sixth<>(SB), X, P; \
	VFMADD213PS  half<>(SB), X, P; \
	VFMADD213PS  one<>(SB), X, P; \
	VFMADD213PS  one<>(SB), X, P; \
	VCVTPS2DQ    N, N; \
	VPSLLD       $23, N, N; \
	VPADDD       N, P, P; \
	VANDPS       M, P, X

// SUM16 adds the lanes of A (0 to 7) and B (8 to 15) as a tree into the lowest lane of XA.
#define SUM16(A, B, XA, XB) \
	VADDPS       B, A, A; \
	VEXTRACTF128 $1, A, XB; \
	VADDPS       XB, XA, XA; \
	VMOVHLPS     XA, XA, XB; \
	VADDPS       XB, XA, XA; \
	VMOVSHDUP    XA, XB; \
	VADDSS       XB, XA, XA

// func sumSquaresAVX2(x *float32, n int) float32
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-20
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1

loop:
	VMOVUPS     (SI), Y2
	VMOVUPS     32(SI), Y3
	VFMADD231PS Y2, Y2, Y0
	VFMADD231PS Y3, Y3, Y1
	ADDQ        $64, SI
	SUBQ        $16, CX
	JNZ         loop
	SUM16(Y0, Y1, X0, X1)
	VMOVSS      X0, ret+16(FP)
	VZEROUPPER
	RET

// func maxAVX2(x *float32, n int) float32
TEXT ·maxAVX2(SB), NOSPLIT, $0-20
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	JMP     next

loop:
	VMAXPS (SI), Y0, Y0
	VMAXPS 32(SI), Y1, Y1

next:
	ADDQ         $64, SI
	SUBQ         $16, CX
	JNZ          loop
	VMAXPS       Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VMOVHLPS     X0, X0, X1
	VMAXPS       X1, X0, X0
	VMOVSHDUP    X0, X1
	VMAXSS       X1, X0, X0
	VMOVSS       X0, ret+16(FP)
	VZEROUPPER
	RET

// func expAVX2(x *float32, n int, max float32) float32
TEXT ·expAVX2(SB), NOSPLIT, $0-28
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS max+16(FP), Y15
	VXORPS       Y0, Y0, Y0
	VXORPS       Y1, Y1, Y1

loop:
	VMOVUPS (SI), Y2
	VMOVUPS 32(SI), Y3
	VSUBPS  Y15, Y2, Y2
	VSUBPS  Y15, Y3, Y3
	EXP(Y2, Y4, Y5, Y6)
	EXP(Y3, Y7, Y8, Y9)
	VMOVUPS Y2, (SI)
	VMOVUPS Y3, 32(SI)
	VADDPS  Y2, Y0, Y0
	VADDPS  Y3, Y1, Y1
	ADDQ    $64, SI
	SUBQ    $16, CX
	JNZ     loop
	SUM16(Y0, Y1, X0, X1)
	VMOVSS  X0, ret+24(FP)
	VZEROUPPER
	RET

// func expSumsAVX2(x *float32, n int, max float32) (sum, weighted float32)
TEXT ·expSumsAVX2(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS max+16(FP), Y15
	VXORPS       Y0, Y0, Y0
	VXORPS       Y1, Y1, Y1
	VXORPS       Y10, Y10, Y10
	VXORPS       Y11, Y11, Y11

loop:
	VMOVUPS     (SI), Y2
	VMOVUPS     32(SI), Y3
	VSUBPS      Y15, Y2, Y2
	VSUBPS      Y15, Y3, Y3
	VMOVAPS     Y2, Y12
	VMOVAPS     Y3, Y13
	EXP(Y2, Y4, Y5, Y6)
	EXP(Y3, Y7, Y8, Y9)
	VMAXPS      least<>(SB), Y12, Y12
	VMAXPS      least<>(SB), Y13, Y13
	VADDPS      Y2, Y0, Y0
	VADDPS      Y3, Y1, Y1
	VFMADD231PS Y2, Y12, Y10
	VFMADD231PS Y3, Y13, Y11
	ADDQ        $64, SI
	SUBQ        $16, CX
	JNZ         loop
	SUM16(Y0, Y1, X0, X1)
	SUM16(Y10, Y11, X10, X11)
	VMOVSS      X0, sum+24(FP)
	VMOVSS      X10, weighted+28(FP)
	VZEROUPPER
	RET

// func siluAVX2(gate, up *float32, n int)
TEXT ·siluAVX2(SB), NOSPLIT, $0-24
	MOVQ    gate+0(FP), DI
	MOVQ    up+8(FP), SI
	MOVQ    n+16(FP), CX
	VMOVUPS one<>(SB), Y14
	VXORPS  Y15, Y15, Y15

loop:
	VMOVUPS (DI), Y2
	VMOVUPS 32(DI), Y3
	VMULPS  (SI), Y2, Y10
	VMULPS  32(SI), Y3, Y11
	VSUBPS  Y2, Y15, Y2
	VSUBPS  Y3, Y15, Y3
	EXP(Y2, Y4, Y5, Y6)
	EXP(Y3, Y7, Y8, Y9)
	VADDPS  Y14, Y2, Y2
	VADDPS  Y14, Y3, Y3
	VDIVPS  Y2, Y10, Y2
	VDIVPS  Y3, Y11, Y3
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	ADDQ    $64, DI
	ADDQ    $64, SI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET

// func mulAVX2(y, x, w *float32, n int, scale float32)
TEXT ·mulAVX2(SB), NOSPLIT, $0-36
	MOVQ         y+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         w+16(FP), BX
	MOVQ         n+24(FP), CX
	VBROADCASTSS scale+32(FP), Y15

loop:
	VMULPS  (SI), Y15, Y0
	VMULPS  32(SI), Y15, Y1
	VMULPS  (BX), Y0, Y0
	VMULPS  32(BX), Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ    $64, SI
	ADDQ    $64, BX
	ADDQ    $64, DI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET

// func addAVX2(y, x *float32, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-24
	MOVQ y+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VADDPS  (SI), Y0, Y0
	VADDPS  32(SI), Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ    $64, SI
	ADDQ    $64, DI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET

// readAVX2 only reads: what it returns keeps the loads from being idle.
//
// func readAVX2(x *byte, n int) uint64
TEXT ·readAVX2(SB), NOSPLIT, $0-24
	MOVQ  x+0(FP), SI
	MOVQ  n+8(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

loop:
	PREFETCHT0 4096(SI)
	PREFETCHT0 4160(SI)
	PREFETCHT0 4224(SI)
	PREFETCHT0 4288(SI)
	VPXOR      (SI), Y0, Y0
	VPXOR      32(SI), Y1, Y1
	VPXOR      64(SI), Y2, Y2
	VPXOR      96(SI), Y3, Y3
	VPXOR      128(SI), Y0, Y0
	VPXOR      160(SI), Y1, Y1
	VPXOR      192(SI), Y2, Y2
	VPXOR      224(SI), Y3, Y3
	ADDQ       $256, SI
	SUBQ       $256, CX
	JNZ        loop
	VPXOR      Y1, Y0, Y0
	VPXOR      Y3, Y2, Y2
	VPXOR      Y2, Y0, Y0
	VMOVQ      X0, ret+16(FP)
	VZEROUPPER
	RET

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	PAUSE
	PAUSE
	PAUSE
	PAUSE
	RET
