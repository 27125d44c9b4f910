NAME
ROWS
 N  Obj     
 G  r0      
 E  r1      
 E  r2      
 E  r3      
 E  r4      
 E  r5      
 L  r6      
 L  r7      
 L  r8      
 L  r9      
 L  r10     
 L  r11     
 L  r12     
 L  r13     
 L  r14     
 L  r15     
 L  r16     
 L  r17     
 G  r18     
 G  r19     
 E  r20     
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    c0        Obj       -1024
    c0        r0        1
    c0        r6        1
    c0        r7        1
    c0        r12       -1
    c0        r13       -1
    c1        Obj       1024
    c1        r0        -1
    c1        r9        1
    c1        r15       -1
    MARK0001  'MARKER'                 'INTEND'
    c2        r1        1
    c2        r6        1
    c2        r18       0.27463929056330111
    c2        r19       0.54927858112660222
    c3        r1        1
    c3        r12       1
    c4        r2        1
    c4        r7        1
    c5        r2        1
    c5        r13       1
    c5        r18       0.52876814513866377
    c5        r19       0.26438407256933188
    c6        r3        1
    c6        r8        1
    c7        r3        1
    c7        r14       1
    c7        r18       0.23042149115722449
    c7        r19       0.46084298231444898
    c8        r4        1
    c8        r9        1
    c8        r19       0.27924696261534915
    c9        r4        1
    c9        r15       1
    c9        r18       0.27924696261534915
    c10       r5        1
    c10       r11       1
    c10       r18       0.43751846807710482
    c10       r19       0.21875923403855241
    c11       r5        1
    c11       r10       1
    c11       r17       1
    c12       r5        1
    c12       r16       1
    c12       r17       1
    c12       r18       0.21875923403855241
    c12       r19       0.43751846807710482
    MARK0002  'MARKER'                 'INTORG'
    c13       Obj       -1024
    c13       r8        1
    c13       r11       1
    c13       r14       -1
    c13       r17       -1
    c14       Obj       1024
    c14       r10       1
    c14       r16       -1
    c15       r18       -1.2202258959493071
    c15       r20       1
    c16       r19       -1.2200495178222994
    c16       r20       1
    MARK0003  'MARKER'                 'INTEND'
RHS
    RHS_V     Obj       -2048
    RHS_V     r1        1
    RHS_V     r2        1
    RHS_V     r3        1
    RHS_V     r4        1
    RHS_V     r5        1
    RHS_V     r6        1
    RHS_V     r7        1
    RHS_V     r8        1
    RHS_V     r9        1
    RHS_V     r10       1
    RHS_V     r11       1
    RHS_V     r20       1
BOUNDS
 BV BOUND     c0      
 BV BOUND     c1      
 UP BOUND     c2        1
 UP BOUND     c3        1
 UP BOUND     c4        1
 UP BOUND     c5        1
 UP BOUND     c6        1
 UP BOUND     c7        1
 UP BOUND     c8        1
 UP BOUND     c9        1
 UP BOUND     c10       1
 UP BOUND     c11       1
 UP BOUND     c12       1
 BV BOUND     c13     
 BV BOUND     c14     
 BV BOUND     c15     
 BV BOUND     c16     
ENDATA
