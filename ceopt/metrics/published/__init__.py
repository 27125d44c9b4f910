"""The metrics of published papers, as they and their code define them."""

from ceopt.metrics.published.carla2021 import CARLA2021
from ceopt.metrics.published.ce_ocl2022 import CE_OCL2022
from ceopt.metrics.published.copa2022 import COPA2022
from ceopt.metrics.published.dice2020 import DICE2020
from ceopt.metrics.published.leofante_potyka2024 import LEOFANTE_POTYKA2024

__all__ = ["SUITES"]

#: Suites by name. A new one is a file beside these and a line here.
SUITES = {
    "dice2020": DICE2020,
    "carla2021": CARLA2021,
    "ce_ocl2022": CE_OCL2022,
    "copa2022": COPA2022,
    "leofante_potyka2024": LEOFANTE_POTYKA2024,
}
