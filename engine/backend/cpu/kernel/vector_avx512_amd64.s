#include "textflag.h"

// The vector kernels with an exponential, for AVX-512: vector_amd64.s at twice the width, with the same bits. The lanes
// are those of the two registers there, and so is the tree that adds them.

#define CONSTANT(name, bits) \
	DATA  name<>+0(SB)/4, $bits; \
	GLOBL name<>(SB), RODATA|NOPTR, $4

CONSTANT(least, 0xc2aea8f6)
CONSTANT(most, 0x42b00000)
CONSTANT(log2e, 0x3fb8aa3b)
CONSTANT(ln2hi, 0x3f317200)
CONSTANT(ln2lo, 0x35bfbe8e)
CONSTANT(one, 0x3f800000)
CONSTANT(half, 0x3f000000)
CONSTANT(sixth, 0x3e2aaaab)
CONSTANT(over24, 0x3d2aaaab)
CONSTANT(over120, 0x3c088889)
CONSTANT(over720, 0x3ab60b61)
CONSTANT(over5040, 0x39500d01)

// CONSTANTS puts them into Z20 to Z31, where EXP wants them.
#define CONSTANTS \
	VBROADCASTSS least<>(SB), Z20; \
	VBROADCASTSS most<>(SB), Z21; \
	VBROADCASTSS log2e<>(SB), Z22; \
	VBROADCASTSS ln2hi<>(SB), Z23; \
	VBROADCASTSS ln2lo<>(SB), Z24; \
	VBROADCASTSS one<>(SB), Z25; \
	VBROADCASTSS half<>(SB), Z26; \
	VBROADCASTSS sixth<>(SB), Z27; \
	VBROADCASTSS over24<>(SB), Z28; \
	VBROADCASTSS over120<>(SB), Z29; \
	VBROADCASTSS over720<>(SB), Z30; \
	VBROADCASTSS over5040<>(SB), Z31

// EXP replaces X by its exponential.
#define EXP(X, N, P, M) \
	VCMPPS       $13, Z20, X, M; \
	VMAXPS       Z20, X, X; \
	VMINPS       Z21, X, X; \
	VMULPS       Z22, X, N; \
	VRNDSCALEPS  $8, N, N; \
	VFNMADD231PS Z23, N, X; \
	VFNMADD231PS Z24, N, X; \
	VMOVAPS      Z31, P; \
	VFMADD213PS  Z30, X, P; \
	VFMADD213PS  Z29, X, P; \
	VFMADD213PS  Z28, X, P; \
	VFMADD213PS  Z27, X, P; \
	VFMADD213PS  Z26, X, P; \
	VFMADD213PS  Z25, X, P; \
	VFMADD213PS  Z25, X, P; \
	VCVTPS2DQ    N, N; \
	VPSLLD       $23, N, N; \
	VPADDD.Z     N, P, M, X

// SUM16 adds the lanes of Z as a tree into its lowest lane, XA.
#define SUM16(Z, A, B, XA, XB) \
	VEXTRACTF64X4 $1, Z, B; \
	VADDPS        B, A, A; \
	VEXTRACTF128  $1, A, XB; \
	VADDPS        XB, XA, XA; \
	VMOVHLPS      XA, XA, XB; \
	VADDPS        XB, XA, XA; \
	VMOVSHDUP     XA, XB; \
	VADDSS        XB, XA, XA

// func expAVX512(x *float32, n int, max float32) float32
TEXT ·expAVX512(SB), NOSPLIT, $0-28
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS max+16(FP), Z19
	VXORPS       X0, X0, X0
	CONSTANTS

loop:
	VMOVUPS (SI), Z2
	VSUBPS  Z19, Z2, Z2
	EXP(Z2, Z3, Z4, K1)
	VMOVUPS Z2, (SI)
	VADDPS  Z2, Z0, Z0
	ADDQ    $64, SI
	SUBQ    $16, CX
	JNZ     loop
	SUM16(Z0, Y0, Y1, X0, X1)
	VMOVSS  X0, ret+24(FP)
	VZEROUPPER
	RET

// func expSumsAVX512(x *float32, n int, max float32) (sum, weighted float32)
TEXT ·expSumsAVX512(SB), NOSPLIT, $0-32
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS max+16(FP), Z19
	VXORPS       X0, X0, X0
	VXORPS       X10, X10, X10
	CONSTANTS

loop:
	VMOVUPS     (SI), Z2
	VSUBPS      Z19, Z2, Z2
	VMAXPS      Z20, Z2, Z12
	EXP(Z2, Z3, Z4, K1)
	VADDPS      Z2, Z0, Z0
	VFMADD231PS Z2, Z12, Z10
	ADDQ        $64, SI
	SUBQ        $16, CX
	JNZ         loop
	SUM16(Z0, Y0, Y1, X0, X1)
	SUM16(Z10, Y10, Y11, X10, X11)
	VMOVSS      X0, sum+24(FP)
	VMOVSS      X10, weighted+28(FP)
	VZEROUPPER
	RET

// func siluAVX512(gate, up *float32, n int)
TEXT ·siluAVX512(SB), NOSPLIT, $0-24
	MOVQ   gate+0(FP), DI
	MOVQ   up+8(FP), SI
	MOVQ   n+16(FP), CX
	VXORPS X15, X15, X15
	CONSTANTS

loop:
	VMOVUPS (DI), Z2
	VMULPS  (SI), Z2, Z10
	VSUBPS  Z2, Z15, Z2
	EXP(Z2, Z3, Z4, K1)
	VADDPS  Z25, Z2, Z2
	VDIVPS  Z2, Z10, Z2
	VMOVUPS Z2, (DI)
	ADDQ    $64, DI
	ADDQ    $64, SI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET
