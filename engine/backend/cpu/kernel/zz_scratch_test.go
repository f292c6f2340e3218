package kernel
import ("testing";"time";"fmt";"os")
func TestScratch(t *testing.T) {
	if os.Getenv("SCRATCH")=="" { t.Skip() }
	var lv []Level
	for _,l := range Levels() { if l.String()==os.Getenv("SCRATCH") { lv=append(lv,l)} }
	for _, l := range lv {
		for _, d := range []DType{F32,BF16} {
			for _, s := range [][3]int{{1,4096,4096},{2,4096,4096},{4,4096,4096},{6,4096,4096},{16,4096,4096},{96,192,512},{12,1024,1024},{128,2048,2048}} {
				rows,o,k := s[0],s[1],s[2]
				m := NewMatrix(o,k,d)
				if d==F32 { m.SetF32(0, random(1,o*k)) } else { m.SetBF16(0,bf16(random(1,o*k))) }
				x,y := random(2,rows*k), make([]float32, rows*o)
				step := min(o, 64)
				b := make([]time.Duration, o/step)
				for i := range b { b[i]=time.Hour }
				end := time.Now().Add(500*time.Millisecond)
				for n:=0; n<5 || time.Now().Before(end); n++ {
					for i := range b { t:=time.Now(); l.Product(y,o,m,x,k,rows,i*step,(i+1)*step); b[i]=min(b[i],time.Since(t)) }
				}
				var e time.Duration
				for i := range b { e+=b[i] }
				sec := e.Seconds()
				fmt.Printf("%-7s %-5s rows %3d [%d,%d]  %8.2f us  %6.1f GB/s %6.1f GFLOP/s\n", l, dtypeName(d), rows,o,k, sec*1e6, float64(m.Bytes())/sec/1e9, 2*float64(rows*o*k)/sec/1e9)
			}
		}
	}
}
