NAME        
ROWS
 N  Obj     
 G  r0      
 G  r1      
 G  r2      
 G  r3      
 G  r4      
 G  r5      
 G  r6      
 G  r7      
 G  r8      
 G  r9      
 E  r10     
 E  r11     
 E  r12     
 E  r13     
 E  r14     
 E  r15     
 E  r16     
 E  r17     
 E  r18     
 L  r19     
 L  r20     
 L  r21     
 L  r22     
 L  r23     
 L  r24     
 L  r25     
 L  r26     
 L  r27     
 L  r28     
 L  r29     
 L  r30     
 L  r31     
 L  r32     
 L  r33     
 L  r34     
 L  r35     
 L  r36     
 L  r37     
 L  r38     
 L  r39     
 L  r40     
 L  r41     
 L  r42     
 L  r43     
 L  r44     
 L  r45     
 L  r46     
 L  r47     
 L  r48     
 L  r49     
 L  r50     
 L  r51     
 L  r52     
 L  r53     
 L  r54     
 L  r55     
 L  r56     
 L  r57     
 L  r58     
 L  r59     
 L  r60     
 L  r61     
 L  r62     
 L  r63     
 L  r64     
 L  r65     
 L  r66     
 L  r67     
 L  r68     
 L  r69     
 G  r70     
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    c0        Obj       0.142857142857143
    c0        r0        1
    c0        r30       1
    c1        Obj       0.142857142857143
    c1        r0        -1
    c1        r1        1
    c1        r33       1
    c1        r49       -1
    c2        Obj       0.142857142857143
    c2        r1        -1
    c2        r2        1
    c3        Obj       0.142857142857143
    c3        r2        -1
    c3        r3        1
    c3        r28       1
    c4        Obj       0.142857142857143
    c4        r3        -1
    c4        r4        1
    c4        r43       1
    c4        r69       -1
    c5        Obj       0.142857142857143
    c5        r4        -1
    c5        r5        1
    c5        r48       -1
    c6        Obj       0.285714285714285
    c6        r5        -1
    c6        r6        1
    c7        Obj       0.142857142857143
    c7        r6        -1
    c7        r7        1
    c7        r46       -1
    c8        Obj       0.142857142857143
    c8        r7        -1
    c8        r8        1
    c8        r47       -1
    c8        r58       -1
    c8        r67       -1
    c9        Obj       0.285714285714285
    c9        r8        -1
    c9        r9        1
    c9        r23       1
    c9        r50       -1
    c10       Obj       1.14285714285714
    c10       r9        -1
    c10       r31       1
    c10       r59       -1
    MARK0001  'MARKER'                 'INTEND'
    c11       r70       0.0182608695652174
    c12       r70       0.017752808988764
    c13       r70       0.02
    c14       r70       0.00666666666666667
    c15       r19       1
    c15       r70       0.0111587982832618
    c16       r20       1
    c16       r70       0.00222222222222222
    c17       r45       1
    c17       r46       1
    c17       r70       0.0169230769230769
    c18       r47       1
    c18       r70       0.0191304347826087
    c19       r10       1
    c19       r48       1
    c19       r70       0.016
    c20       r10       1
    c20       r70       0.00285714285714286
    c21       r21       1
    c21       r22       1
    c21       r70       0.00683673469387755
    c22       r22       1
    c22       r49       1
    c22       r70       0.02
    c23       r11       1
    c23       r23       1
    c23       r70       0.0025
    c24       r11       1
    c24       r50       1
    c24       r70       0.0133333333333333
    c25       r70       0.0096969696969697
    c26       r70       0.00473867595818815
    c27       r12       1
    c27       r24       1
    c28       r12       1
    c28       r51       1
    c28       r70       0.02
    c29       r12       1
    c29       r52       1
    c29       r70       0.00666666666666667
    c30       r25       1
    c30       r53       1
    c30       r70       0.0144444444444444
    c31       r53       1
    c31       r54       1
    c31       r70       0.0144444444444444
    c32       r26       1
    c32       r70       0.0116734693877551
    c33       r56       1
    c33       r70       0.0075
    c34       r55       1
    c34       r56       1
    c34       r70       0.02
    c35       r13       1
    c35       r28       1
    c35       r70       0.00136363636363636
    c36       r13       1
    c36       r27       1
    c36       r70       0.0125984251968504
    c37       r13       1
    c38       r14       1
    c38       r30       1
    c38       r70       0.000588235294117647
    c39       r14       1
    c39       r29       1
    c39       r70       0.00533333333333333
    c40       r14       1
    c41       r70       0.00286792452830189
    c42       r70       0.0136
    c43       r70       0.00434782608695652
    c44       r57       1
    c44       r70       0.00518518518518519
    c45       r58       1
    c45       r70       0.0167741935483871
    c46       r15       1
    c46       r31       1
    c47       r15       1
    c47       r59       1
    c47       r70       0.02
    c48       r70       0.0150757575757576
    c49       r16       1
    c49       r33       1
    c49       r70       0.00516129032258065
    c50       r16       1
    c50       r32       1
    c51       r16       1
    c51       r60       1
    c51       r70       0.02
    c52       r61       1
    c52       r70       0.00979716024340771
    c53       r34       1
    c53       r70       0.00285714285714286
    c54       r62       1
    c54       r70       0.012
    c55       r35       1
    c55       r70       0.0132467532467532
    c56       r70       0.000909090909090908
    c57       r36       1
    c57       r37       1
    c57       r70       0.0129716599190283
    c58       r36       1
    c58       r63       1
    c58       r70       0.0032280701754386
    c59       r38       1
    c59       r70       0.00210054753608761
    c60       r64       1
    c60       r70       0.00973469387755102
    c61       r39       1
    c61       r40       1
    c61       r70       0.0126666666666667
    c62       r40       1
    c62       r65       1
    c62       r70       0.00465116279069767
    c63       r66       1
    c63       r70       0.00943722943722944
    c64       r70       0.0146666666666667
    c65       r41       1
    c65       r70       0.0166666666666667
    c66       r70       0.000869565217391304
    c67       r67       1
    c67       r70       0.0183333333333333
    c68       r17       1
    c68       r43       1
    c69       r17       1
    c69       r42       1
    c69       r69       1
    c69       r70       2.10526315789461e-05
    c70       r17       1
    c70       r68       1
    c70       r69       1
    c70       r70       0.0184210526315789
    c71       r18       1
    c71       r44       1
    c71       r70       0.0173166800966962
    c72       r18       1
    c72       r70       0.00215686274509804
    c73       r70       0.00828025477707006
    c74       r70       0.00702702702702703
    c75       r70       0.0146428571428571
    MARK0002  'MARKER'                 'INTORG'
    c76       Obj       2.22452689155041
    c76       r19       1
    c76       r22       1
    c76       r25       1
    c76       r27       1
    c76       r29       1
    c76       r37       1
    c76       r40       1
    c76       r41       1
    c76       r54       -1
    c76       r55       -1
    c76       r57       -1
    c76       r62       -1
    c76       r63       -1
    c77       Obj       2.10871244194518
    c77       r20       1
    c77       r24       1
    c77       r32       1
    c77       r42       1
    c77       r51       -1
    c77       r60       -1
    c77       r68       -1
    c78       Obj       -1.1
    c78       r21       1
    c78       r26       1
    c78       r35       1
    c78       r38       1
    c78       r39       -1
    c78       r44       -1
    c78       r45       -1
    c78       r52       1
    c78       r53       -1
    c78       r56       -1
    c78       r61       -1
    c78       r64       -1
    c78       r65       1
    c78       r66       -1
    c79       Obj       -3.1
    c79       r34       1
    MARK0003  'MARKER'                 'INTEND'
RHS
    RHS_V     r10       1
    RHS_V     r11       1
    RHS_V     r12       1
    RHS_V     r13       1
    RHS_V     r14       1
    RHS_V     r15       1
    RHS_V     r16       1
    RHS_V     r17       1
    RHS_V     r18       1
    RHS_V     r19       1
    RHS_V     r20       1
    RHS_V     r21       1
    RHS_V     r22       1
    RHS_V     r23       1
    RHS_V     r24       1
    RHS_V     r25       1
    RHS_V     r26       1
    RHS_V     r27       1
    RHS_V     r28       1
    RHS_V     r29       1
    RHS_V     r30       1
    RHS_V     r31       1
    RHS_V     r32       1
    RHS_V     r33       1
    RHS_V     r34       1
    RHS_V     r35       1
    RHS_V     r36       1
    RHS_V     r37       1
    RHS_V     r38       1
    RHS_V     r40       1
    RHS_V     r41       1
    RHS_V     r42       1
    RHS_V     r43       1
    RHS_V     r52       1
    RHS_V     r65       1
    RHS_V     r70       0.44262376817108
BOUNDS
 BV BOUND     c0      
 BV BOUND     c1      
 BV BOUND     c2      
 BV BOUND     c3      
 BV BOUND     c4      
 BV BOUND     c5      
 BV BOUND     c6      
 BV BOUND     c7      
 BV BOUND     c8      
 BV BOUND     c9      
 BV BOUND     c10     
 UP BOUND     c11       1
 UP BOUND     c12       1
 UP BOUND     c13       1
 UP BOUND     c14       1
 UP BOUND     c15       1
 UP BOUND     c16       1
 UP BOUND     c17       1
 UP BOUND     c18       1
 UP BOUND     c19       1
 UP BOUND     c20       1
 UP BOUND     c21       1
 UP BOUND     c22       1
 UP BOUND     c23       1
 UP BOUND     c24       1
 UP BOUND     c25       1
 UP BOUND     c26       1
 UP BOUND     c27       1
 UP BOUND     c28       1
 UP BOUND     c29       1
 UP BOUND     c30       1
 UP BOUND     c31       1
 UP BOUND     c32       1
 UP BOUND     c33       1
 UP BOUND     c34       1
 UP BOUND     c35       1
 UP BOUND     c36       1
 UP BOUND     c37       1
 UP BOUND     c38       1
 UP BOUND     c39       1
 UP BOUND     c40       1
 UP BOUND     c41       1
 UP BOUND     c42       1
 UP BOUND     c43       1
 UP BOUND     c44       1
 UP BOUND     c45       1
 UP BOUND     c46       1
 UP BOUND     c47       1
 UP BOUND     c48       1
 UP BOUND     c49       1
 UP BOUND     c50       1
 UP BOUND     c51       1
 UP BOUND     c52       1
 UP BOUND     c53       1
 UP BOUND     c54       1
 UP BOUND     c55       1
 UP BOUND     c56       1
 UP BOUND     c57       1
 UP BOUND     c58       1
 UP BOUND     c59       1
 UP BOUND     c60       1
 UP BOUND     c61       1
 UP BOUND     c62       1
 UP BOUND     c63       1
 UP BOUND     c64       1
 UP BOUND     c65       1
 UP BOUND     c66       1
 UP BOUND     c67       1
 UP BOUND     c68       1
 UP BOUND     c69       1
 UP BOUND     c70       1
 UP BOUND     c71       1
 UP BOUND     c72       1
 UP BOUND     c73       1
 UP BOUND     c74       1
 UP BOUND     c75       1
 BV BOUND     c76     
 BV BOUND     c77     
 BV BOUND     c78     
 BV BOUND     c79     
ENDATA
