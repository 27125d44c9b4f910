"""RoCourseNet (Guo, Jia, Chen, Squicciarini & Yadav 2023), its experiments done again."""
