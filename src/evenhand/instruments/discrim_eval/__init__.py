"""DiscrimEval (Tamkin et al. 2023): decisions about people who differ in age, gender or race."""
